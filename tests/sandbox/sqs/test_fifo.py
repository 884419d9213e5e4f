from __future__ import annotations

from hashlib import sha256

import pytest

from tests.sandbox.sqs.world import World


def test_a_receive_takes_several_of_a_group_in_order(world: World) -> None:
    url = world.queue("q.fifo")
    world.send_group(url, "a", "a1", "a2")
    world.send_group(url, "b", "b1")
    world.send_group(url, "a", "a3")
    assert world.bodies(url, 10) == ["a1", "a2", "a3", "b1"]


def test_a_group_is_blocked_while_any_of_its_messages_is_in_flight(world: World) -> None:
    url = world.queue("q.fifo")
    world.send_group(url, "a", "a1", "a2", "a3", "a4")
    world.send_group(url, "b", "b1")
    first, second = world.receive(url, 2)
    assert [first["Body"], second["Body"]] == ["a1", "a2"]
    assert world.bodies(url) == ["b1"]
    world.delete(url, first)
    assert world.bodies(url) == []
    world.delete(url, second)
    assert world.bodies(url) == ["a3", "a4"]


def test_deleting_the_later_of_two_in_flight_does_not_open_the_group(world: World) -> None:
    url = world.queue("q.fifo")
    world.send_group(url, "a", "a1", "a2", "a3")
    _, second = world.receive(url, 2)
    world.delete(url, second)
    assert world.bodies(url) == []
    world.later(30)
    assert world.bodies(url) == ["a1", "a3"]


def test_what_expires_comes_again_in_order(world: World) -> None:
    url = world.queue("q.fifo")
    world.send_group(url, "a", "a1", "a2", "a3", "a4")
    world.receive(url, 3)
    world.later(30)
    assert world.bodies(url, 10) == ["a1", "a2", "a3", "a4"]


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


def test_a_duplicate_gets_the_answer_of_the_original_and_is_not_delivered(world: World) -> None:
    url = world.queue("q.fifo")
    first = world.send(url, "one", MessageGroupId="g", MessageDeduplicationId="d")
    again = world.send(url, "another body", MessageGroupId="h", MessageDeduplicationId="d")
    assert (again["MessageId"], again["SequenceNumber"]) == (first["MessageId"], first["SequenceNumber"])
    assert world.bodies(url) == ["one"]


def test_five_minutes_outlive_a_delete_and_are_not_prolonged(world: World) -> None:
    url = world.queue("q.fifo")
    world.send(url, "one", MessageGroupId="g", MessageDeduplicationId="d")
    world.delete(url, world.receive(url)[0])
    world.later(299.9)
    world.send(url, "two", MessageGroupId="g", MessageDeduplicationId="d")
    assert world.counts(url) == (0, 0, 0)
    world.later(0.1)
    world.send(url, "three", MessageGroupId="g", MessageDeduplicationId="d")
    assert world.bodies(url) == ["three"]


def test_content_based_deduplication_looks_at_the_body_only(world: World) -> None:
    url = world.queue("q.fifo", ContentBasedDeduplication="true")
    one = {"x": {"DataType": "String", "StringValue": "1"}}
    world.send(url, "same", MessageGroupId="g", MessageAttributes=one)
    world.send(url, "same", MessageGroupId="g")
    world.send(url, "same", MessageGroupId="g", MessageDeduplicationId="explicit")
    world.send(url, "any", MessageGroupId="g", MessageDeduplicationId=sha256(b"same").hexdigest())
    ids = [m["Attributes"]["MessageDeduplicationId"] for m in world.receive(url)]
    assert ids == [sha256(b"same").hexdigest(), "explicit"]


def test_the_scope_of_deduplication_can_be_the_group(world: World) -> None:
    url = world.queue("q.fifo", DeduplicationScope="messageGroup", FifoThroughputLimit="perMessageGroupId")
    for group in ("g", "h", "g"):
        world.send(url, group, MessageGroupId=group, MessageDeduplicationId="d")
    assert world.bodies(url) == ["g", "h"]


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


def test_a_receive_can_be_repeated_under_its_attempt_id(world: World) -> None:
    url = world.queue("q.fifo")
    world.send_group(url, "a", "a1", "a2", "a3")
    first = world.receive(url, 2, ReceiveRequestAttemptId="try")
    world.later(29)
    assert world.receive(url, 2, ReceiveRequestAttemptId="try") == first
    world.later(29)
    assert world.counts(url) == (1, 2, 0)
    assert world.bodies(url, 2, ReceiveRequestAttemptId="other") == []
    world.delete(url, first[0])
    assert world.bodies(url, 2, ReceiveRequestAttemptId="try") == []


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


def test_an_attempt_id_is_good_for_five_minutes(world: World) -> None:
    url = world.queue("q.fifo", VisibilityTimeout="1000")
    world.send_group(url, "a", "a1")
    first = world.receive(url, ReceiveRequestAttemptId="try")
    world.later(299.9)
    assert world.receive(url, ReceiveRequestAttemptId="try") == first
    world.later(0.1)
    assert world.receive(url, ReceiveRequestAttemptId="try") == []


def test_a_queue_delay_also_counts_for_messages_already_there(world: World) -> None:
    url = world.queue("q.fifo")
    world.send_group(url, "a", "a1", "a2")
    world.set(url, DelaySeconds="60")
    assert world.counts(url) == (0, 0, 2)
    world.set(url, DelaySeconds="10")
    world.later(10)
    assert world.bodies(url) == ["a1", "a2"]


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


def test_fifo_needs_a_group_and_a_deduplication_id(world: World) -> None:
    url = world.queue("q.fifo")
    assert world.refusal("SendMessage", QueueUrl=url, MessageBody="x", MessageDeduplicationId="d") == (
        "MissingParameter",
        "The request must contain the parameter MessageGroupId.",
    )
    assert world.code("SendMessage", QueueUrl=url, MessageBody="x", MessageGroupId="g") == "InvalidParameterValue"
    entries = [{"Id": "1", "MessageBody": "x", "MessageGroupId": "g"}]
    assert world.code("SendMessageBatch", QueueUrl=url, Entries=entries) == "InvalidParameterValue"


@pytest.mark.parametrize("bad", ["", "a" * 129, "with space", "ü"])
@pytest.mark.parametrize("name", ["MessageGroupId", "MessageDeduplicationId"])
def test_ids_have_1_to_128_printable_ascii_characters(world: World, name: str, bad: str) -> None:
    url = world.queue("q.fifo")
    ids = {"MessageGroupId": "g", "MessageDeduplicationId": "d", name: bad}
    assert world.code("SendMessage", QueueUrl=url, MessageBody="x", **ids) == "InvalidParameterValue"


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
