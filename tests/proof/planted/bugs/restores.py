"""What holds everything after PostgreSQL was restored from a backup."""

from __future__ import annotations

from tests.proof.planted.bug import quoted

BUGS = quoted("""
@reprocessing/pipeline/maintenance/detect_restore.py
@tests/reprocessing/pipeline/maintenance/test_after_restore.py
a-restore-goes-unnoticed: test_a_restore_that_nobody_tells_of_is_held
-    if known is None or known <= ticks:
+    if known is None or known <= ticks or ticks > 0:
a-flushed-redis-holds-everything: test_a_redis_that_was_flushed_holds_nothing
-    if known is None or known <= ticks:
+    if known is not None and known <= ticks:
-    return now is None or known <= now.ticks or _hold(
+    return bool(known is not None and now and known <= now.ticks) or _hold(
-        if not restore_detection.raise_ticks(known) and not alone:
-            return None
+
-known=known, t
+known=known or 0, t
a-restore-that-was-held-is-held-again: test_a_worker_that_froze_with_the_proof_of_a_restore_does_not_hold_it_again
-        if not restore_detection.raise_ticks(known) and not alone:
+        if not restore_detection.raise_ticks(known) and known < 0:

@reprocessing/store/capture/returns_without_attempt.py
what-is-forgotten-has-not-passed:
    test_what_came_back_from_a_forgotten_attempt_went_before_an_earlier_letter_that_turns_up_now
-), {PASSED_ONCE}
-UPDATE
+)
+UPDATE

@reprocessing/store/maintenance/restore_hold.py
a-hold-ends-before-all-is-in-sight: test_a_capture_that_ran_dry_before_all_is_in_sight_ends_no_hold
-coalesce(d.drained_through < h.since + %(hidden)b::interval, true)
+coalesce(d.drained_through < h.since, true)
what-died-since-the-hold-is-doubted:
    test_what_died_between_the_backup_and_the_hold_is_in_doubt_and_what_died_since_is_not
-AND l.first_sent_at < h.since
+

@reprocessing/store/replay/settlement.py
a-forgotten-return-is-presumed-delivered: test_a_promotion_that_had_begun_before_the_hold_presumes_nothing
-       AND NOT EXISTS (SELECT FROM redrive_global_stop WHERE id = 2)  -- what
+       -- what

@reprocessing/store/safety/stops.py
any-resume-lifts-the-hold-after-a-restore: test_no_other_command_lifts_the_hold
-    if dlq is None:
-        refuse_while_held()
+
-    DELETE FROM redrive_global_stop WHERE id = 1 AND (
+    DELETE FROM redrive_global_stop WHERE (
""")
