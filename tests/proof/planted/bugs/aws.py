"""Moves that AWS makes, and queues that it owns."""

from __future__ import annotations

from tests.proof.planted.bug import quoted

BUGS = quoted("""
@reprocessing/gateways/aws/lean_requests.py
@tests/reprocessing/gateways/aws/test_lean_requests.py
sent-twice-by-itself: test_an_answer_is_read_as_botocore_reads_it_and_no_request_is_sent_again
-        self._received.answer = answer
+        self._received.answer = None

@reprocessing/pipeline/aws/follow_redrives.py
@tests/race/aws/test_native_redrive.py
a-list-ends-what-was-claimed-since: test_an_answer_that_is_older_than_the_claim_ends_nothing
-    active = next((move for move in listed if move.is_active), None)
-    if own is None:
+    active, own = next((move for move in listed if move.is_active), None), aws_redrives.current(dlq.pk)
+    if own is None:
@tests/reprocessing/pipeline/dlqs/test_workers_come_back.py
no-answer-of-aws-is-an-answer: test_while_sqs_is_out_of_reach_the_lanes_wait_and_say_why
-            aws_redrive_checks.record_no_answer(dlq.pk, str(listed))
+            aws_redrive_checks.record_answer(dlq.pk, at=at)
known-before-it-is-written-down: test_what_aws_answered_is_known_when_it_is_written_down
-            _resolve(dlq, own, listed)
-            aws_redrive_checks.record_answer(dlq.pk, at=at)
+            aws_redrive_checks.record_answer(dlq.pk, at=at)
+            _resolve(dlq, own, listed)

@reprocessing/store/aws/aws_redrive_checks.py
an-answer-of-aws-holds-for-ever: test_no_lane_is_leased_until_aws_was_asked_within_a_minute
-(coalesce(d.aws_redrive_answered_at <= redrive_now() - make_interval(secs => {ANSWER_VALID_FOR}), true)
+(d.aws_redrive_answered_at IS NULL
an-answer-of-aws-counts-from-when-it-came: test_an_answer_holds_from_when_it_was_asked_for
-greatest(aws_redrive_answered_at, %(at)b::timestamptz)
+greatest(aws_redrive_answered_at, %(at)b::timestamptz, redrive_now())
a-question-whose-asker-died-is-never-asked-again: test_a_question_whose_asker_died_is_asked_again
-AND coalesce(d.aws_redrive_asked_at <= redrive_now() - make_interval(secs => {_ANSWERED_WITHIN}), true)
+AND d.aws_redrive_asked_at IS NULL
@tests/reprocessing/store/test_hot_path.py
every-copy-is-read-to-see-whether-any-is-in-sight (alone): test_the_reads_of_a_statement_do_not_grow_with_the_run
-           ORDER BY c.dlq_id, c.visible_until LIMIT 1) <= redrive_now(), false)
+             AND c.visible_until <= (SELECT redrive_now()) LIMIT 1) IS NOT NULL, false)

@reprocessing/store/aws/aws_redrives.py
@tests/reprocessing/pipeline/aws/test_moved_meanwhile.py
aws-moved-what-it-could-not-see: test_what_was_out_of_sight_for_as_long_as_aws_may_have_worked_goes_on
-        return moved_by_aws.mark_moved(dlq, until=moved + MAX_DURATION)
+        return moved_by_aws.mark_moved(dlq)
""")
