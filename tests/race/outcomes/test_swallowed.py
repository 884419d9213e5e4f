"""A FIFO target that deduplicates resends: a message that has returned does not return again, and is not presumed."""

from __future__ import annotations

import json

import pytest

from reprocessing.domain.replay.verdicts import NotSent
from reprocessing.models import Attempt
from reprocessing.pipeline.replay import send_batches
from reprocessing.store.ordering import lanes
from tests.reprocessing.pipeline.bench import Clock, Outcomes, Workbench

pytestmark = pytest.mark.django_db(transaction=True)

LEASE = 9


def _awaiting_fifo() -> Workbench:
    """A FIFO queue whose consumer always fails, and its DLQ."""
    bench = Workbench(fifo=True, fields={"ordering_key": "system:MessageGroupId", "sequence": "system:SequenceNumber"})
    policy = json.dumps({"deadLetterTargetArn": bench.dlq.arn, "maxReceiveCount": 1})
    bench.sqs.set_queue_attributes(QueueUrl=bench.source_url, Attributes={"RedrivePolicy": policy})
    bench.judge_by_absence(window=60)
    bench.enqueue("letter")
    return bench


def _fails_at_the_consumer(bench: Workbench) -> None:
    """Receive it once; the next receive moves it to the DLQ, with the same message id."""
    assert bench.sqs.receive_message(QueueUrl=bench.source_url, VisibilityTimeout=0)["Messages"]
    assert "Messages" not in bench.sqs.receive_message(QueueUrl=bench.source_url)
    assert bench.capture().captured.returns == 1


def _is_sent_again(bench: Workbench) -> None:
    bench.replay()
    assert bench.letter().state == "awaiting"
    assert len(bench.delivered()) == 1


def _sent_by_a_dead_worker(clock: Clock) -> Workbench:
    bench = _awaiting_fifo()
    bench.replay_and_die(sent=True)
    clock.advance(LEASE)
    return bench


def test_a_return_after_an_attempt_that_was_not_sent_is_sent_again(clock: Clock) -> None:
    bench = _sent_by_a_dead_worker(clock)
    once = iter([False, True])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(send_batches, "letters", _sends_nothing)
        bench.replay(stop=lambda: next(once))
    _fails_at_the_consumer(bench)
    _is_sent_again(bench)


def _sends_nothing(intended: list[object], *_: object, **__: object) -> Outcomes:
    return {one.attempt_id: NotSent("its time had run out") for one in intended}  # type: ignore[attr-defined]


def test_a_resend_deduplicated_against_a_copy_that_returned_has_failed(clock: Clock) -> None:
    bench = _sent_by_a_dead_worker(clock)
    once = iter([False, True])
    with bench.meanwhile(lambda: _fails_at_the_consumer(bench)):
        bench.replay(stop=lambda: next(once))
    _is_sent_again(bench)


def _one_copy_of_two_attempts(clock: Clock) -> Workbench:
    """The first attempt's owner lost its lane, but recorded its message id; the second attempt was deduplicated."""
    bench = _awaiting_fifo()

    def another_takes_the_lane_and_dies() -> None:
        clock.advance(LEASE)
        assert len(lanes.lease("another", limit=1, lease=8)) == 1

    with bench.meanwhile(another_takes_the_lane_and_dies):
        bench.replay()
    clock.advance(LEASE)
    bench.replay()
    first, second = Attempt.objects.order_by("no")
    assert first.sent_message_id == second.sent_message_id is not None
    return bench


def test_a_resend_deduplicated_against_a_copy_that_has_not_returned_has_arrived(clock: Clock) -> None:
    bench = _one_copy_of_two_attempts(clock)
    outcomes = list(Attempt.objects.order_by("no").values_list("outcome", flat=True))
    assert (bench.letter().state, bench.letter().attempts, outcomes) == ("awaiting", 2, ["unknown", None])


def test_the_return_of_a_copy_of_two_attempts_fails_the_newer_attempt(clock: Clock) -> None:
    bench = _one_copy_of_two_attempts(clock)
    _fails_at_the_consumer(bench)
    outcomes = list(Attempt.objects.order_by("no").values_list("outcome", flat=True))
    assert (bench.letter().state, outcomes) == ("waiting", ["unknown", "returned"])
    _is_sent_again(bench)
