from __future__ import annotations

from typing import Any

import pytest

from tests.sandbox.sqs.world import World, arn


def bury(world: World, url: str, *bodies: str) -> None:
    for body in bodies:
        world.send(url, body)
    world.receive(url)
    world.receive(url)


def tasks(world: World, name: str = "dlq", most: int = 10) -> list[dict[str, Any]]:
    results: list[dict[str, Any]] = world.call("ListMessageMoveTasks", SourceArn=arn(name), MaxResults=most)["Results"]
    return results


def test_the_rate_is_kept_over_the_clock(world: World) -> None:
    url, dlq = world.dead_letter_pair("q", "dlq", VisibilityTimeout="0")
    other = world.queue("other")
    bury(world, url, *(str(n) for n in range(10)))
    started = world.call(
        "StartMessageMoveTask", SourceArn=arn("dlq"), DestinationArn=arn("other"), MaxNumberOfMessagesPerSecond=2
    )
    arrived = []
    for _ in range(6):
        arrived.append(sum(world.counts(other)))
        world.later(1)
    assert arrived == [0, 2, 4, 6, 8, 10]
    assert world.counts(dlq) == (0, 0, 0)
    (task,) = tasks(world)
    assert (task["Status"], task["MaxNumberOfMessagesPerSecond"], task["DestinationArn"]) == (
        "COMPLETED",
        2,
        arn("other"),
    )
    assert "TaskHandle" not in task
    assert world.code("CancelMessageMoveTask", TaskHandle=started["TaskHandle"]) == "InvalidParameterValue"


def test_a_task_without_a_rate_moves_at_most_500_a_second(world: World) -> None:
    url, dlq = world.dead_letter_pair("q", "dlq", VisibilityTimeout="0")
    for _ in range(60):
        bury(world, url, *"0123456789")
    world.call("StartMessageMoveTask", SourceArn=arn("dlq"))
    world.later(1)
    assert world.counts(dlq) == (100, 0, 0)
    world.later(1)
    assert world.counts(dlq) == (0, 0, 0)


def test_in_flight_messages_are_not_moved(world: World) -> None:
    url, dlq = world.dead_letter_pair("q", "dlq", VisibilityTimeout="0")
    bury(world, url, "a", "b")
    (held,) = world.receive(dlq, 1, VisibilityTimeout=100)
    world.call("StartMessageMoveTask", SourceArn=arn("dlq"))
    world.later(1)
    assert world.counts(dlq) == (0, 1, 0)
    (task,) = tasks(world)
    assert (task["Status"], task["ApproximateNumberOfMessagesMoved"]) == ("COMPLETED", 1)
    world.delete(dlq, held)
    assert world.counts(dlq) == (0, 0, 0)


def test_a_cancelled_task_stops_and_leaves_what_it_moved(world: World) -> None:
    url, dlq = world.dead_letter_pair("q", "dlq", VisibilityTimeout="0")
    bury(world, url, *"abcdef")
    handle = world.call("StartMessageMoveTask", SourceArn=arn("dlq"), MaxNumberOfMessagesPerSecond=1)["TaskHandle"]
    world.later(2)
    (running,) = tasks(world)
    assert (running["Status"], running["TaskHandle"]) == ("RUNNING", handle)
    answer = world.call("CancelMessageMoveTask", TaskHandle=handle)
    assert answer == {"ApproximateNumberOfMessagesMoved": 2}
    assert tasks(world)[0]["Status"] == "CANCELLING"
    world.later(5)
    assert tasks(world)[0]["Status"] == "CANCELLED"
    assert (world.counts(url), world.counts(dlq)) == ((2, 0, 0), (4, 0, 0))


def test_one_task_at_a_time_and_ten_remembered(world: World) -> None:
    url, _ = world.dead_letter_pair("q", "dlq", VisibilityTimeout="0")
    bury(world, url, "a")
    start = {"SourceArn": arn("dlq"), "MaxNumberOfMessagesPerSecond": 1}
    world.call("StartMessageMoveTask", **start)
    assert world.refusal("StartMessageMoveTask", **start) == (
        "InvalidParameterValue",
        "There is already a task running. Only one active task is allowed for a source queue arn at a given time.",
    )
    for _ in range(11):
        world.later(2)
        world.call("StartMessageMoveTask", **start)
    world.later(2)
    seen = tasks(world)
    assert len(seen) == 10
    times = [task["StartedTimestamp"] for task in seen]
    assert times == sorted(times, reverse=True)
    assert tasks(world, most=1) == seen[:1]


def test_a_message_nobody_lost_fails_the_default_move(world: World) -> None:
    _, dlq = world.dead_letter_pair("q", "dlq")
    world.send(dlq, "sent here by hand")
    world.call("StartMessageMoveTask", SourceArn=arn("dlq"))
    world.later(1)
    (task,) = tasks(world)
    assert (task["Status"], task["FailureReason"]) == ("FAILED", "CouldNotDetermineMessageSource")
    assert world.bodies(dlq) == ["sent here by hand"]


@pytest.mark.parametrize(
    ("parameters", "code"),
    [({"SourceArn": arn("dlq"), "DestinationArn": arn("dlq")}, "InvalidParameterValue"), ({}, "MissingParameter")],
)
def test_a_move_that_cannot_work_is_refused(world: World, parameters: dict[str, object], code: str) -> None:
    world.dead_letter_pair("q", "dlq")
    assert world.code("StartMessageMoveTask", **parameters) == code


@pytest.mark.parametrize("handle", ["foobared", "e30=", "ü", "W10="])
def test_a_handle_of_no_task_is_refused(world: World, handle: str) -> None:
    assert world.code("CancelMessageMoveTask", TaskHandle=handle) == "InvalidParameterValue"
