"""What keeps lanes from being leased before AWS has said whether it moved their messages."""

from __future__ import annotations

from typing import Final

from tests.proof.planted.bug import Bug

_LOOKS: Final = "reprocessing/store/aws/aws_redrive_checks.py"
_OF_OUTAGES: Final = "tests/reprocessing/pipeline/dlqs/test_workers_come_back.py"
_NOT_LEASED: Final = f"{_OF_OUTAGES}::test_no_lane_is_leased_until_aws_was_asked_within_a_minute"

BUGS: Final = (
    Bug(
        name="lanes-are-leased-whatever-aws-moved",
        breaks="Nothing twice: after an outage lanes are leased before AWS has said whether it moved their messages.",
        file="reprocessing/store/ordering/active_runs.py",
        old='"{ACTIVE_RUNS} AND NOT {MOVES_UNKNOWN}"',
        new='"{ACTIVE_RUNS}"',
        caught_by=_NOT_LEASED,
    ),
    Bug(
        name="an-answer-of-aws-holds-for-ever",
        breaks="Nothing twice: AWS was asked once, and what it moves after that is sent again.",
        file=_LOOKS,
        old=(
            "(coalesce(d.aws_redrive_answered_at <= redrive_now() - make_interval(secs => {ANSWER_VALID_FOR}), true)"
            " AND {_IN_SIGHT})"
        ),
        new="(d.aws_redrive_answered_at IS NULL AND {_IN_SIGHT})",
        caught_by=_NOT_LEASED,
    ),
    Bug(
        name="an-answer-of-aws-counts-from-when-it-came",
        breaks="Nothing twice: an answer that was late, or lay with a frozen worker, counts as a fresh one.",
        file=_LOOKS,
        old="greatest(aws_redrive_answered_at, %(at)b::timestamptz)",
        new="greatest(aws_redrive_answered_at, %(at)b::timestamptz, redrive_now())",
        caught_by=f"{_OF_OUTAGES}::test_an_answer_holds_from_when_it_was_asked_for",
    ),
    Bug(
        name="nobody-asks-before-lanes-are-leased",
        breaks="A service that stands still: lanes wait for an answer of AWS, and no worker asks.",
        file="reprocessing/pipeline/replay/replay_slice.py",
        old="            native_redrive.check_before_leasing(self.runs)\n",
        new="",
        caught_by=f"{_OF_OUTAGES}::test_what_aws_did_not_move_goes_at_once",
    ),
    Bug(
        name="a-question-whose-asker-died-is-never-asked-again",
        breaks="Crash anywhere, recover alone: the worker that was to ask AWS died, and no other asks.",
        file=_LOOKS,
        old="AND coalesce(d.aws_redrive_asked_at <= redrive_now() - make_interval(secs => {_ANSWERED_WITHIN}), true)\n",
        new="AND d.aws_redrive_asked_at IS NULL\n",
        caught_by=f"{_OF_OUTAGES}::test_a_question_whose_asker_died_is_asked_again",
    ),
    Bug(
        name="no-answer-of-aws-is-an-answer",
        breaks="Nothing twice: while SQS is out of reach, lanes go on as if AWS had moved nothing.",
        file="reprocessing/pipeline/aws/native_redrive.py",
        old="            aws_redrive_checks.record_no_answer(dlq.pk, str(listed))\n",
        new="            aws_redrive_checks.record_answer(dlq.pk, at=at)\n",
        caught_by=f"{_OF_OUTAGES}::test_while_sqs_is_out_of_reach_the_lanes_wait_and_say_why",
    ),
    Bug(
        name="known-before-it-is-written-down",
        breaks="Crash anywhere: whoever dies between an answer of AWS and its marks has lanes leased without them.",
        file="reprocessing/pipeline/aws/native_redrive.py",
        old=("            _resolve(dlq, own, listed)\n            aws_redrive_checks.record_answer(dlq.pk, at=at)\n"),
        new=("            aws_redrive_checks.record_answer(dlq.pk, at=at)\n            _resolve(dlq, own, listed)\n"),
        caught_by=f"{_OF_OUTAGES}::test_what_aws_answered_is_known_when_it_is_written_down",
    ),
)
