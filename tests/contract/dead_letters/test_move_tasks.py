"""Message move tasks: AWS's own redrive, which ours must recognise, and which a person may start at any time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.contract.conftest import Advance
from tests.contract.queues import Boto, Counts, Queue, bury, redrive_policy, refused, system

if TYPE_CHECKING:
    from collections.abc import Callable

    from mypy_boto3_sqs.type_defs import ListMessageMoveTasksResultEntryTypeDef

    from tests.contract.conftest import MakePair, MakeQueue

HOUR = 3600


def dead_letters(source: Queue, *bodies: str) -> None:
    for body in bodies:
        source.send(body)
    bury(source)


def start(dlq: Queue, **rest: Boto) -> str:
    return dlq.client.start_message_move_task(SourceArn=dlq.arn, **rest)["TaskHandle"]


def tasks(dlq: Queue, **rest: Boto) -> list[ListMessageMoveTasksResultEntryTypeDef]:
    return dlq.client.list_message_move_tasks(SourceArn=dlq.arn, **rest)["Results"]


def status(dlq: Queue) -> str:
    return tasks(dlq)[0]["Status"]


@pytest.fixture
def ended(until: Callable[[Callable[[], object]], None]) -> Callable[[Queue], str]:
    """Lets time pass until the newest task of a dlq has ended; answers with its status."""

    def wait(dlq: Queue) -> str:
        until(lambda: status(dlq) not in {"RUNNING", "CANCELLING"})
        return status(dlq)

    return wait


@pytest.fixture
def held(make_pair: MakePair) -> tuple[Queue, Queue, str]:
    """A task that moves one message a second: its dlq with ten messages, their source, its handle."""
    source, dlq = make_pair()
    dead_letters(source, *(f"m{n}" for n in range(10)))
    return source, dlq, start(dlq, MaxNumberOfMessagesPerSecond=1)


def test_a_task_moves_each_message_to_its_source(
    make_pair: MakePair, make_queue: MakeQueue, ended: Callable[[Queue], str]
) -> None:
    first, dlq = make_pair()
    second = make_queue(RedrivePolicy=redrive_policy(dlq))
    dead_letters(first, "a", "b")
    dead_letters(second, "c", "d")
    start(dlq)
    assert ended(dlq) == "COMPLETED"
    assert (sorted(first.bodies()), sorted(second.bodies())) == (["a", "b"], ["c", "d"])
    assert dlq.counts() == Counts(0, 0, 0)


def test_a_task_may_have_a_destination(make_pair: MakePair, queue: Queue, ended: Callable[[Queue], str]) -> None:
    source, dlq = make_pair()
    dead_letters(source, "a", "b")
    start(dlq, DestinationArn=queue.arn)
    assert ended(dlq) == "COMPLETED"
    assert (sorted(queue.bodies()), source.counts(), dlq.counts()) == (["a", "b"], Counts(0, 0, 0), Counts(0, 0, 0))


def test_a_moved_message_is_new_and_carries_what_it_carried(
    make_pair: MakePair, ended: Callable[[Queue], str], advance: Advance
) -> None:
    source, dlq = make_pair()
    attributes = {"raw": {"DataType": "Binary.label", "BinaryValue": bytes(range(256))}}
    sent = source.send("bödy", MessageAttributes=attributes)
    bury(source)
    moved_at = advance(HOUR) * 1000
    start(dlq)
    ended(dlq)
    moved = source.receive_one()
    assert (moved["Body"], moved["MessageAttributes"]) == ("bödy", attributes)
    assert moved["MessageId"] != sent["MessageId"]
    assert system(moved)["ApproximateReceiveCount"] == "1"
    assert int(system(moved)["SentTimestamp"]) >= int(moved_at)
    assert "DeadLetterQueueSourceArn" not in system(moved)


def test_a_fifo_task_keeps_the_order_of_a_group(make_pair: MakePair, ended: Callable[[Queue], str]) -> None:
    source, dlq = make_pair(fifo=True)
    source.send_group("g", "m0", "m1", "m2")
    bury(source)
    start(dlq)
    assert ended(dlq) == "COMPLETED"
    moved = source.receive()
    assert [message["Body"] for message in moved] == ["m0", "m1", "m2"]
    assert [system(message)["MessageGroupId"] for message in moved] == ["g"] * 3


@pytest.mark.soak
def test_a_task_keeps_to_its_rate(
    held: tuple[Queue, Queue, str], ended: Callable[[Queue], str], advance: Advance
) -> None:
    source, dlq, _ = held
    started = advance(0)
    assert status(dlq) == "RUNNING"
    assert ended(dlq) == "COMPLETED"
    assert advance(0) - started >= 8  # ten messages, one a second, the first perhaps at once
    assert len(source.bodies()) == 10


def test_a_running_task_is_listed_with_its_handle(held: tuple[Queue, Queue, str]) -> None:
    _, dlq, handle = held
    (task,) = tasks(dlq)
    named = {name: task.get(name) for name in ("TaskHandle", "Status", "SourceArn", "MaxNumberOfMessagesPerSecond")}
    assert named == {"TaskHandle": handle, "Status": "RUNNING", "SourceArn": dlq.arn, "MaxNumberOfMessagesPerSecond": 1}
    assert task["ApproximateNumberOfMessagesToMove"] == 10
    assert "DestinationArn" not in task


def test_an_ended_task_is_listed_without_its_handle(
    make_pair: MakePair, queue: Queue, ended: Callable[[Queue], str], advance: Advance
) -> None:
    source, dlq = make_pair()
    dead_letters(source, "a", "b")
    before = advance(0) * 1000
    start(dlq, DestinationArn=queue.arn)
    ended(dlq)
    (task,) = tasks(dlq)
    assert (task["Status"], task["DestinationArn"]) == ("COMPLETED", queue.arn)
    assert (task["ApproximateNumberOfMessagesMoved"], task["ApproximateNumberOfMessagesToMove"]) == (2, 2)
    assert "TaskHandle" not in task
    assert "MaxNumberOfMessagesPerSecond" not in task
    assert 0 <= task["StartedTimestamp"] - int(before) < 60_000


def test_a_cancelled_task_moves_no_more(
    held: tuple[Queue, Queue, str], ended: Callable[[Queue], str], advance: Advance
) -> None:
    source, dlq, handle = held
    advance(3)
    answer = dlq.client.cancel_message_move_task(TaskHandle=handle)
    assert ended(dlq) == "CANCELLED"
    moved = source.counts().visible
    advance(60)
    assert (source.counts().visible, dlq.counts().visible) == (moved, 10 - moved)
    assert answer["ApproximateNumberOfMessagesMoved"] <= moved < 10


def test_only_one_task_runs_at_a_time(held: tuple[Queue, Queue, str], ended: Callable[[Queue], str]) -> None:
    _, dlq, _ = held
    assert refused(start, dlq) == "InvalidParameterValue"
    ended(dlq)
    start(dlq)


def test_tasks_are_listed_newest_first(make_pair: MakePair, ended: Callable[[Queue], str]) -> None:
    source, dlq = make_pair()
    for batch in (["a"], ["b", "c"], ["d", "e", "f"]):
        dead_letters(source, *batch)
        start(dlq)
        ended(dlq)
        for message in source.receive():
            source.delete(message)
    moved = [task["ApproximateNumberOfMessagesMoved"] for task in tasks(dlq, MaxResults=2)]
    assert (moved, len(tasks(dlq)), len(tasks(dlq, MaxResults=10))) == ([3, 2], 1, 3)


def test_a_queue_that_is_no_dlq_cannot_be_moved(queue: Queue, make_queue: MakeQueue) -> None:
    assert refused(start, queue) == "InvalidParameterValue"
    assert refused(start, queue, DestinationArn=make_queue().arn) == "InvalidParameterValue"


def test_a_source_or_destination_that_does_not_exist_is_refused(make_pair: MakePair) -> None:
    _, dlq = make_pair()
    nowhere = f"{dlq.arn}-nowhere"
    assert refused(dlq.client.start_message_move_task, SourceArn=nowhere) == "ResourceNotFoundException"
    assert refused(dlq.client.list_message_move_tasks, SourceArn=nowhere) == "ResourceNotFoundException"
    assert refused(start, dlq, DestinationArn=nowhere) == "ResourceNotFoundException"


def test_a_destination_of_the_other_type_is_refused(make_pair: MakePair, fifo: Queue) -> None:
    _, dlq = make_pair()
    refused(start, dlq, DestinationArn=fifo.arn)
    assert tasks(dlq) == []


@pytest.mark.parametrize("rate", [0, 501])
def test_a_rate_beyond_its_range_is_refused(make_pair: MakePair, rate: int) -> None:
    _, dlq = make_pair()
    assert refused(start, dlq, MaxNumberOfMessagesPerSecond=rate) == "InvalidParameterValue"


def test_more_than_ten_tasks_cannot_be_listed(make_pair: MakePair) -> None:
    _, dlq = make_pair()
    assert refused(tasks, dlq, MaxResults=11) == "InvalidParameterValue"


def test_only_a_running_task_can_be_cancelled(held: tuple[Queue, Queue, str], ended: Callable[[Queue], str]) -> None:
    _, dlq, handle = held
    ended(dlq)
    refused(dlq.client.cancel_message_move_task, TaskHandle=handle)
    assert refused(dlq.client.cancel_message_move_task, TaskHandle="garbage") == "InvalidParameterValue"
    assert status(dlq) == "COMPLETED"


def test_a_task_whose_destination_vanishes_fails_and_leaves_the_rest(
    make_pair: MakePair, make_queue: MakeQueue, ended: Callable[[Queue], str]
) -> None:
    source, dlq = make_pair()
    destination = make_queue()
    dead_letters(source, *(f"m{n}" for n in range(10)))
    start(dlq, DestinationArn=destination.arn, MaxNumberOfMessagesPerSecond=1)
    destination.client.delete_queue(QueueUrl=destination.url)
    assert ended(dlq) == "FAILED"
    (task,) = tasks(dlq)
    assert "FailureReason" in task
    assert dlq.counts().visible >= 8
