from __future__ import annotations

import pytest

from tests.sandbox.sqs.world import World


def test_deleting_the_later_of_two_in_flight_does_not_open_the_group(world: World) -> None:
    url = world.queue("q.fifo")
    world.send_group(url, "a", "a1", "a2", "a3")
    _, second = world.receive(url, 2)
    world.delete(url, second)
    assert world.bodies(url) == []
    world.later(30)
    assert world.bodies(url) == ["a1", "a3"]


@pytest.mark.parametrize(("extended", "open_again"), [(0, []), (1, ["a1"]), (2, ["a1", "a2"])])
def test_nothing_is_handed_out_behind_the_first_message_in_flight(
    world: World, extended: int, open_again: list[str]
) -> None:
    url = world.queue("q.fifo", VisibilityTimeout="1")
    world.send_group(url, "a", "a1", "a2", "a3")
    world.hide(url, world.receive(url)[extended], 100)
    world.later(2)
    assert world.bodies(url) == open_again


def test_groups_take_turns(world: World) -> None:
    url = world.queue("q.fifo", VisibilityTimeout="0")
    for group in "abc":
        world.send_group(url, group, f"{group}1")
    assert [world.bodies(url, 1)[0] for _ in range(6)] == ["a1", "b1", "c1", "a1", "b1", "c1"]


def test_an_expired_handle_is_refused(world: World) -> None:
    url = world.queue("q.fifo")
    world.send_group(url, "a", "a1")
    (message,) = world.receive(url)
    world.later(30)
    handle = message["ReceiptHandle"]
    expected = (
        "InvalidParameterValue",
        f"Value {handle} for parameter ReceiptHandle is invalid. Reason: The receipt handle has expired.",
    )
    assert world.refusal("DeleteMessage", QueueUrl=url, ReceiptHandle=handle) == expected
    assert world.refusal("ChangeMessageVisibility", QueueUrl=url, ReceiptHandle=handle, VisibilityTimeout=9) == expected
    (again,) = world.receive(url)
    assert world.refusal("DeleteMessage", QueueUrl=url, ReceiptHandle=handle) == expected
    world.delete(url, again)
    world.delete(url, again)
    world.call("DeleteMessage", QueueUrl=url, ReceiptHandle=handle)
    assert world.counts(url) == (0, 0, 0)


def test_purging_forgets_deduplication_ids(world: World) -> None:
    url = world.queue("q.fifo")
    world.send(url, "one", MessageGroupId="g", MessageDeduplicationId="d")
    world.call("PurgeQueue", QueueUrl=url)
    world.send(url, "two", MessageGroupId="g", MessageDeduplicationId="d")
    assert world.bodies(url) == ["two"]


def test_sequence_numbers_have_twenty_digits_and_rise(world: World) -> None:
    url = world.queue("q.fifo")
    numbers = [answer["SequenceNumber"] for answer in world.send_group(url, "a", "1", "2", "3")]
    assert sorted(set(numbers)) == numbers
    assert [len(number) for number in numbers] == [20, 20, 20]
    assert [m["Attributes"]["SequenceNumber"] for m in world.receive(url)] == numbers


@pytest.mark.parametrize("change", ["deleted", "hidden longer", "visible again"])
def test_an_attempt_cannot_be_repeated_after_a_change(world: World, change: str) -> None:
    url = world.queue("q.fifo")
    world.send_group(url, "a", "a1", "a2")
    first, second = world.receive(url, ReceiveRequestAttemptId="try")
    if change == "deleted":
        world.delete(url, first)
        world.delete(url, second)
    elif change == "hidden longer":
        world.hide(url, second, 100)
    else:
        world.later(30)
    handles = [message["ReceiptHandle"] for message in world.receive(url, ReceiveRequestAttemptId="try")]
    assert {first["ReceiptHandle"], second["ReceiptHandle"]}.isdisjoint(handles)
    assert len(handles) == (2 if change == "visible again" else 0)


def test_a_message_has_no_delay_of_its_own(world: World) -> None:
    url = world.queue("q.fifo", DelaySeconds="5")
    sent = {"QueueUrl": url, "MessageBody": "x", "MessageGroupId": "g", "MessageDeduplicationId": "d"}
    assert world.refusal("SendMessage", **sent, DelaySeconds=2) == (
        "InvalidParameterValue",
        (
            "Value 2 for parameter DelaySeconds is invalid. Reason: The request include parameter that is not valid "
            "for this queue type."
        ),
    )
    world.call("SendMessage", **sent, DelaySeconds=0)
    assert world.counts(url) == (0, 0, 1)


def test_a_full_fifo_queue_gives_nothing_and_says_nothing() -> None:
    world = World(in_flight_limit=2)
    url = world.queue("q.fifo")
    for group in "abc":
        world.send_group(url, group, f"{group}1")
    assert world.bodies(url) == ["a1", "b1"]
    assert world.bodies(url) == []


def test_a_group_whose_head_outlived_its_retention_goes_on(world: World) -> None:
    url = world.queue("q.fifo", MessageRetentionPeriod="60")
    world.send_group(url, "a", "a1")
    world.receive(url, VisibilityTimeout=1000)
    world.later(30)
    world.send_group(url, "a", "a2")
    assert world.bodies(url) == []
    world.later(30)
    assert world.bodies(url) == ["a2"]


@pytest.mark.parametrize("looks", [0, 1])
def test_a_receive_that_gives_nothing_decides_nothing_about_the_order(looks: int) -> None:
    world = World()
    url, _ = world.dead_letter_pair("q.fifo", "dlq.fifo", 2)
    for body in ("a1", "a2", "a3"):
        world.send(url, body, MessageGroupId="a", MessageDeduplicationId=body)
    for _ in range(2):
        world.later(1)
        assert [one["Body"] for one in world.receive(url, 2, VisibilityTimeout=1)] == ["a1", "a2"]
    world.send(url, "b1", MessageGroupId="b", MessageDeduplicationId="b1")
    world.later(1)
    for body in ("b1", "a3"):  # a1 and a2 are dead by now
        assert [one["Body"] for one in world.receive(url, 1, VisibilityTimeout=1)] == [body]
    for _ in range(looks):
        assert world.receive(url) == []
    world.later(1)
    assert [one["Body"] for one in world.receive(url, 1)] == ["b1"]
