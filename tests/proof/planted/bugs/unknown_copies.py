"""What keeps a key held while a copy whose attempt ended unknown may be in its target."""

from __future__ import annotations

from tests.proof.planted.bug import quoted

BUGS = quoted("""
@reprocessing/pipeline/replay/settle.py
@tests/reprocessing/pipeline/replay/test_twins_of_an_unknown_copy.py
a-last-attempt-of-unknown-end-frees-its-key: test_a_twin_is_not_sent_while_a_copy_may_be_in_the_target
-LetterState.PARKED, "free" if known else "held",
-            deadline=target.copy_window if
+LetterState.PARKED, "free",
+            deadline=None and target.copy_window if

@reprocessing/store/capture/returns_without_attempt.py
a-forgotten-return-frees-another-copy-s-key: test_a_return_of_a_forgotten_attempt_frees_no_key
-SET state = CASE WHEN m.until IS NULL THEN 'free' ELSE 'held' END, until = m.until
+SET state = 'free', until = NULL

@reprocessing/store/maintenance/retention.py
@tests/reprocessing/store/maintenance/test_retention.py
a-purge-frees-a-held-key: test_a_letter_is_not_deleted_while_its_target_may_hold_a_copy
-   AND {COPY_UNTIL} IS NULL
+

@reprocessing/store/ordering/orphaned_lanes.py
@tests/reprocessing/pipeline/replay/test_twins_of_an_unknown_copy.py
a-lost-worker-s-last-attempt-frees-its-key: test_a_twin_is_not_sent_while_a_copy_may_be_in_the_target
-coalesce(f.until, {COPY_UNTIL}) AS until
+f.until

@reprocessing/store/parking_lot/restore_discarded.py
a-discard-taken-back-frees-its-key: test_a_restored_letter_keeps_its_key
-greatest({COPY_UNTIL}, (
+greatest(NULL::timestamptz, (

@reprocessing/store/replay/intent.py
@tests/race/test_claims.py
a-discarded-letter-s-twin-goes-beside-its-copy:
    test_a_released_letter_does_not_win_a_discarded_key_while_a_copy_of_the_other_may_be_there
-c.state <> 'held' AND coalesce(c.until <= redrive_now(), true) AND EXISTS (
+c.state <> 'held' AND EXISTS (

@reprocessing/store/replay/settlement_effects.py
@tests/reprocessing/pipeline/replay/test_twins_of_an_unknown_copy.py
whatever-leaves-frees-its-key: test_a_twin_is_not_sent_while_a_copy_may_be_in_the_target
-       SET state = CASE WHEN m.claim = 'free' AND m.until IS NOT NULL THEN 'held' ELSE m.claim END,
+       SET state = m.claim,
a-target-without-a-window-keeps-no-copy: test_a_twin_is_not_sent_while_a_copy_may_be_in_the_target
-      ELSE greatest(300, t.visibility, t.timeout) END)
+      ELSE 0 END)
a-key-waits-for-a-letter-that-goes-elsewhere: test_a_divert_frees_no_key_while_a_copy_may_be_in_the_target
-    SELECT CASE WHEN e.target_id = c.target_id
+    SELECT CASE WHEN true OR e.target_id = c.target_id

@reprocessing/store/routing/routing_decisions.py
a-rule-that-diverts-frees-the-key: test_a_divert_frees_no_key_while_a_copy_may_be_in_the_target
-SET state = CASE WHEN m.until IS NULL THEN 'free' ELSE 'held' END, until = m.until
+SET state = 'free', until = NULL
""")
