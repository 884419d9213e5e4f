"""Batches: one answer per entry, one bad entry does not spoil the others, and what spoils a batch whole."""

from __future__ import annotations

import pytest

from tests.contract.conftest import Advance
from tests.contract.digests import attributes_digest, body_digest
from tests.contract.queues import Boto, Counts, Queue, refused

SERVICE = "AWS.SimpleQueueService"
ACTIONS = ["send_message_batch", "delete_message_batch", "change_message_visibility_batch"]


def entries(action: str, queue: Queue, ids: list[str]) -> list[dict[str, Boto]]:
    """Entries for any of the three batch actions that are right but for their ids; each has a message of its own."""
    if action == "send_message_batch":
        return [{"Id": id_, "MessageBody": "m"} for id_ in ids]
    messages = []
    for _ in ids:
        queue.send("m")
        messages.append(queue.receive_one(most=1))
    rest = {"VisibilityTimeout": 60} if action == "change_message_visibility_batch" else {}
    return [
        {"Id": id_, "ReceiptHandle": message["ReceiptHandle"], **rest}
        for id_, message in zip(ids, messages, strict=True)
    ]


def test_each_entry_is_answered_with_its_id_and_digests(queue: Queue) -> None:
    attribute = {"a": {"DataType": "String", "StringValue": "v"}}
    answer = queue.send_batch(
        {"Id": "first", "MessageBody": "one", "MessageAttributes": attribute}, {"Id": "second", "MessageBody": "two"}
    )
    one, two = answer["Successful"]
    assert (one["Id"], one["MD5OfMessageBody"]) == ("first", body_digest("one"))
    assert one["MD5OfMessageAttributes"] == attributes_digest(attribute)
    assert (two["Id"], two["MD5OfMessageBody"]) == ("second", body_digest("two"))
    assert answer.get("Failed", []) == []
    received = {message["MessageId"]: message["Body"] for message in queue.receive()}
    assert received == {one["MessageId"]: "one", two["MessageId"]: "two"}


def test_a_forbidden_character_fails_its_own_entry(queue: Queue) -> None:
    answer = queue.send_batch(
        {"Id": "a", "MessageBody": "good"},
        {"Id": "b", "MessageBody": "bad\x01"},
        {"Id": "c", "MessageBody": "also good"},
    )
    assert [entry["Id"] for entry in answer["Successful"]] == ["a", "c"]
    assert [(entry["Id"], entry["Code"], entry["SenderFault"]) for entry in answer["Failed"]] == [
        ("b", "InvalidMessageContents", True)
    ]
    assert sorted(queue.bodies()) == ["also good", "good"]


def test_a_delay_beyond_its_range_fails_its_own_entry(queue: Queue) -> None:
    answer = queue.send_batch(
        {"Id": "a", "MessageBody": "good"}, {"Id": "b", "MessageBody": "late", "DelaySeconds": 901}
    )
    assert [entry["Id"] for entry in answer["Successful"]] == ["a"]
    assert [(entry["Id"], entry["Code"], entry["SenderFault"]) for entry in answer["Failed"]] == [
        ("b", "InvalidParameterValue", True)
    ]


@pytest.mark.parametrize("action", ACTIONS)
def test_an_empty_batch_is_refused(queue: Queue, action: str) -> None:
    assert refused(getattr(queue.client, action), QueueUrl=queue.url, Entries=[]) == f"{SERVICE}.EmptyBatchRequest"


@pytest.mark.parametrize("action", ACTIONS)
def test_eleven_entries_are_refused(queue: Queue, action: str) -> None:
    eleven = entries(action, queue, [str(n) for n in range(11)])
    code = refused(getattr(queue.client, action), QueueUrl=queue.url, Entries=eleven)
    assert code == f"{SERVICE}.TooManyEntriesInBatchRequest"


@pytest.mark.parametrize("action", ACTIONS)
def test_ids_that_repeat_are_refused(queue: Queue, action: str) -> None:
    twice = entries(action, queue, ["same", "same"])
    before = queue.counts()
    code = refused(getattr(queue.client, action), QueueUrl=queue.url, Entries=twice)
    assert code == f"{SERVICE}.BatchEntryIdsNotDistinct"
    assert queue.counts() == before


@pytest.mark.parametrize(
    ("action", "wrong"),
    [(ACTIONS[0], wrong) for wrong in ("", "a b", "a.b", "é", "x" * 81)] + [(ACTIONS[1], "a b"), (ACTIONS[2], "a b")],
    ids=["send-empty", "send-space", "send-dot", "send-accent", "send-81", "delete-space", "change-space"],
)
def test_an_id_that_breaks_the_rules_is_refused(queue: Queue, action: str, wrong: str) -> None:
    request = entries(action, queue, ["good", wrong])
    before = queue.counts()
    code = refused(getattr(queue.client, action), QueueUrl=queue.url, Entries=request)
    assert code == f"{SERVICE}.InvalidBatchEntryId"
    assert queue.counts() == before


def test_an_id_may_have_eighty_characters(queue: Queue) -> None:
    longest = "Az0_-".ljust(80, "x")
    assert queue.send_batch({"Id": longest, "MessageBody": "m"})["Successful"][0]["Id"] == longest


def test_a_malformed_handle_fails_its_own_deletion(queue: Queue) -> None:
    queue.send("m")
    request = [
        {"Id": "good", "ReceiptHandle": queue.receive_one()["ReceiptHandle"]},
        {"Id": "bad", "ReceiptHandle": "garbage"},
    ]
    answer = queue.client.delete_message_batch(QueueUrl=queue.url, Entries=request)  # type: ignore[arg-type]  # a plain dict
    assert [entry["Id"] for entry in answer["Successful"]] == ["good"]
    assert [(entry["Id"], entry["Code"], entry["SenderFault"]) for entry in answer["Failed"]] == [
        ("bad", "ReceiptHandleIsInvalid", True)
    ]
    assert queue.counts() == Counts(0, 0, 0)


def test_a_batch_deletes_what_one_receive_returned(queue: Queue) -> None:
    for n in range(10):
        queue.send(f"m{n}")
    request = [{"Id": str(n), "ReceiptHandle": message["ReceiptHandle"]} for n, message in enumerate(queue.receive())]
    answer = queue.client.delete_message_batch(QueueUrl=queue.url, Entries=request)  # type: ignore[arg-type]  # a plain dict
    assert [entry["Id"] for entry in answer["Successful"]] == [str(n) for n in range(10)]
    assert queue.counts() == Counts(0, 0, 0)


def test_each_entry_has_a_visibility_of_its_own(queue: Queue, advance: Advance) -> None:
    for body in ("short", "long"):
        queue.send(body)
    seconds = {"short": 100, "long": 1000}
    request = [
        {"Id": body, "ReceiptHandle": message["ReceiptHandle"], "VisibilityTimeout": seconds[body]}
        for message in queue.receive()
        for body in [message["Body"]]
    ]
    request.append({"Id": "bad", "ReceiptHandle": "garbage", "VisibilityTimeout": 1})
    answer = queue.client.change_message_visibility_batch(QueueUrl=queue.url, Entries=request)  # type: ignore[arg-type]  # a plain dict
    advance(101)
    assert sorted(entry["Id"] for entry in answer["Successful"]) == ["long", "short"]
    assert [(entry["Id"], entry["Code"], entry["SenderFault"]) for entry in answer["Failed"]] == [
        ("bad", "ReceiptHandleIsInvalid", True)
    ]
    assert queue.bodies() == ["short"]


def test_a_fifo_batch_needs_groups_and_deduplication_ids(fifo: Queue) -> None:
    refused(fifo.send_batch, {"Id": "a", "MessageBody": "m", "MessageDeduplicationId": "d"})
    refused(fifo.send_batch, {"Id": "a", "MessageBody": "m", "MessageGroupId": "g"})
    assert fifo.counts() == Counts(0, 0, 0)
