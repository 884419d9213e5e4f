"""What keeps lanes from being leased before AWS has said whether it moved their messages."""

from __future__ import annotations

from tests.proof.planted.bug import quoted

BUGS = quoted("""
@reprocessing/pipeline/aws/native_redrive.py
@tests/reprocessing/pipeline/dlqs/test_workers_come_back.py
no-answer-of-aws-is-an-answer: test_while_sqs_is_out_of_reach_the_lanes_wait_and_say_why
-            aws_redrive_checks.record_no_answer(dlq.pk, str(listed))
+            aws_redrive_checks.record_answer(dlq.pk, at=at)
known-before-it-is-written-down: test_what_aws_answered_is_known_when_it_is_written_down
-            _resolve(dlq, own, listed)
-            aws_redrive_checks.record_answer(dlq.pk, at=at)
+            aws_redrive_checks.record_answer(dlq.pk, at=at)
+            _resolve(dlq, own, listed)

@reprocessing/pipeline/replay/replay_slice.py
nobody-asks-before-lanes-are-leased: test_what_aws_did_not_move_goes_at_once
-            native_redrive.check_before_leasing(self.runs)
+

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

@reprocessing/store/ordering/active_runs.py
lanes-are-leased-whatever-aws-moved: test_no_lane_is_leased_until_aws_was_asked_within_a_minute
-"{ACTIVE_RUNS} AND NOT {MOVES_UNKNOWN}"
+"{ACTIVE_RUNS}"
""")
