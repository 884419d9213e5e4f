"""A return is the same letter, failed again: known by its id or its marks, counted once, never just deleted."""

from __future__ import annotations

from tests.proof.planted.bug import quoted

BUGS = quoted("""
@reprocessing/pipeline/capture/capture.py
@tests/reprocessing/pipeline/capture/test_another_reader.py
a-reader-is-looked-for-once: test_no_absence_when_a_reader_comes_during_the_capture
-        proves = drained and was_alone and alone()
+        proves = drained and was_alone
@tests/reprocessing/pipeline/capture/test_capture.py
a-late-return-is-deleted: test_a_return_reopens_a_letter_that_was_delivered
-        held = rows.in_transaction(record)
+        held: list[Deletable] = []
without-marks-a-possible-return-goes: test_without_redrive_ids_a_possible_return_is_parked
-possible_return=digest in doubtful,
+possible_return=False,

@reprocessing/pipeline/replay/settle.py
@tests/race/test_swallowed.py
swallowed-resends-are-awaited: test_a_resend_deduplicated_against_a_copy_that_returned_has_failed
-    back = returned_attempts(taken) if taken else set()
+    back = returned_attempts({}) if taken else set()
@tests/reprocessing/pipeline/replay/test_replay_slice.py
evidence-of-a-lost-owner-is-dropped: test_a_worker_that_lost_its_lane_writes_only_its_evidence
-        if lost:
+        if lost and not ordered:

@reprocessing/pipeline/runs/feed_run.py
@tests/reprocessing/pipeline/capture/test_another_reader.py
a-reader-is-looked-for-before-the-lease: test_copies_hidden_after_the_count_hide_no_return
-            alone=lambda: is_ours_alone(dlq, conf),
+            alone=(lambda said: lambda: said)(is_ours_alone(dlq, conf)),
copies-are-hidden-without-a-word-of-sqs: test_a_copy_deleted_by_somebody_else_hides_no_return
-    capture_lease.mark_extended(dlq.pk, [copy for copy in perhaps if copy.message_id in hidden], until=until)
-    return bool(hidden)
+    capture_lease.mark_extended(dlq.pk, perhaps, until=until)
+    return True

@reprocessing/store/capture/capture_lease.py
copies-in-sight-excuse-another-reader: test_a_copy_deleted_by_somebody_else_hides_no_return
-state = 'held' AND visible_until > redrive_now() AND NOT {COPY_IS_UNSEEN})
+state = 'held' AND NOT {COPY_IS_UNSEEN})

@reprocessing/store/capture/received_copies.py
@tests/race/test_swallowed.py
a-return-is-an-older-attempt-s: test_the_return_of_a_copy_of_two_attempts_fails_the_newer_attempt
- ORDER BY met.message_id, met.rank, met.no DESC
+ ORDER BY met.message_id, met.rank, met.no
@tests/reprocessing/pipeline/capture/test_capture.py
returns-known-by-their-body-alone: test_equal_bytes_without_a_redrive_id_are_a_new_letter
-(SELECT * FROM redrive_letter x WHERE x.public_id = s.public_id OFFSET 0) l
-     CROSS JOIN LATERAL (SELECT * FROM redrive_attempt x WHERE x.letter_id = l.id AND x.no = s.no OFFSET 0) a
+(SELECT * FROM redrive_letter x WHERE x.body_hash = s.body_hash OFFSET 0) l
+     CROSS JOIN LATERAL (SELECT * FROM redrive_attempt x WHERE x.letter_id = l.id OFFSET 0) a
marks-are-believed-on-any-body: test_a_redrive_id_on_another_body_is_a_new_letter
-(l.body_hash = s.body_hash OR t.kind = 'celery' OR EXISTS (
+(true OR EXISTS (
sent-ids-are-not-looked-for: test_a_return_is_recognised_by_the_message_id_of_the_target
-WHERE x.sent_message_id = s.message_id OFFSET 0) a
+WHERE x.sent_message_id = s.message_id AND false OFFSET 0) a
@tests/reprocessing/pipeline/capture/test_returned_copies.py
marks-are-believed-wherever-they-died: test_a_message_that_failed_in_another_queue_is_a_new_letter
-AND CASE WHEN s.source IS NOT NULL THEN t.arn = s.source
+AND CASE WHEN s.source IS NOT NULL THEN true

@reprocessing/store/capture/returned_messages.py
@tests/race/test_a_capture_loses_its_dlq.py
a-return-recorded-when-anybody-may-have-it:
    test_a_return_whose_capture_froze_until_it_was_visible_is_neither_recorded_nor_deleted
-     WHERE redrive_now() < %(until)b::timestamptz
+
@tests/reprocessing/pipeline/capture/test_capture.py
delivered-is-for-ever: test_a_return_reopens_a_letter_that_was_presumed_delivered
-       AND l.state IN ('waiting', 'sending', 'awaiting', 'delivered', 'parked', 'discarded')
+       AND l.state IN ('waiting', 'sending', 'awaiting', 'parked', 'discarded')
a-superseded-return-moves-its-letter: test_a_return_of_an_older_attempt_is_recorded_and_moves_nothing
-       AND NOT EXISTS (SELECT FROM redrive_attempt later WHERE later.letter_id = l.id AND later.no > c.no
-                          AND later.outcome IS DISTINCT FROM 'not_sent')
+
a-return-counts-as-often-as-it-is-received: test_two_copies_of_one_return_are_one_failure
-     WHERE a.id = b.attempt_id AND a.returned_at IS NULL
+     WHERE a.id = b.attempt_id
two-copies-in-one-receive-count-twice: test_two_copies_of_one_return_in_one_receive_are_one_failure
-      FROM (SELECT DISTINCT ON (attempt_id) * FROM back) b
+      FROM (SELECT * FROM back WHERE message_id = (SELECT max(message_id) FROM back WHERE false)) b
a-return-keeps-its-epoch: test_a_return_reopens_a_letter_that_was_delivered
-       SET epoch = l.epoch + 1, frees_lane = false, presumed = false,
+       SET frees_lane = false, presumed = false,
a-return-keeps-its-key: test_a_return_frees_the_key_of_its_letter
-THEN 'discarded' ELSE 'free' END AS claim, c.until
+THEN 'discarded' END AS claim, c.until
a-return-overrules-a-person: test_a_return_changes_no_parked_or_discarded_letter
-           state = CASE WHEN {STAYS} THEN l.state WHEN
+           state = CASE WHEN false THEN l.state WHEN
spent-before-it-was-released: test_a_letter_released_during_its_return_is_not_parked
-(SELECT l.attempts - l.attempts_before_release - l.spared >= d.max_attempts AND
+(SELECT l.attempts - l.spared >= d.max_attempts AND

@reprocessing/store/capture/returns_without_attempt.py
attempts-of-earlier-tools-come-back: test_a_redrive_id_with_an_attempt_of_earlier_tools_is_a_new_letter
-   AND s.no > l.earlier
+

@reprocessing/store/replay/settlement_effects.py
@tests/reprocessing/pipeline/replay/test_an_earlier_attempt_of_unknown_end.py
a-return-frees-the-key-of-a-copy-nobody-heard-of: test_a_later_failure_keeps_the_key
-               AND a.outcome = 'unknown' AND a.returned_at IS NULL AND {COPY_ENDS} > redrive_now()) u
+               AND a.outcome = 'unknown' AND false AND {COPY_ENDS} > redrive_now()) u
a-parked-letter-forgets-its-other-copy: test_if_one_of_two_unknown_attempts_fails_the_next_letter_waits
-c.was_open AND coalesce(u.outlasts, false) AS reopens
+false AS reopens
a-last-return-ends-a-letter-of-which-a-copy-may-be-about:
    test_after_the_last_attempt_the_next_letter_waits_for_both_copies
-c.spent AND NOT coalesce(u.outlasts, false) AS ends
+c.spent AS ends
what-is-told-of-has-not-passed: test_a_letter_sent_by_a_dead_worker_makes_an_earlier_letter_stale
-went="(SELECT letter_id FROM closed WHERE was_open)"
+went="(SELECT letter_id FROM closed WHERE false)"
""")
