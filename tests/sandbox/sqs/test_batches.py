from __future__ import annotations

import pytest

from tests.sandbox.sqs.world import World

ENTRY: dict[str, dict[str, object]] = {
    "SendMessageBatch": {"MessageBody": "x"},
    "DeleteMessageBatch": {"ReceiptHandle": "x"},
    "ChangeMessageVisibilityBatch": {"ReceiptHandle": "x", "VisibilityTimeout": 1},
}


@pytest.mark.parametrize("action", ENTRY)
@pytest.mark.parametrize(
    ("ids", "code"),
    [
        ([], "AWS.SimpleQueueService.EmptyBatchRequest"),
        ([str(n) for n in range(11)], "AWS.SimpleQueueService.TooManyEntriesInBatchRequest"),
        (["a", "a"], "AWS.SimpleQueueService.BatchEntryIdsNotDistinct"),
        (["a b"], "AWS.SimpleQueueService.InvalidBatchEntryId"),
        ([""], "AWS.SimpleQueueService.InvalidBatchEntryId"),
        (["a" * 81], "AWS.SimpleQueueService.InvalidBatchEntryId"),
        ([None], "MissingParameter"),
        ([1], "SerializationException"),
    ],
)
def test_the_entries_of_a_batch_are_one_to_ten_with_distinct_ids(
    world: World, action: str, ids: list[object], code: str
) -> None:
    entries = [{"Id": entry_id, **ENTRY[action]} for entry_id in ids]
    assert world.code(action, QueueUrl=world.queue("q"), Entries=entries) == code


@pytest.mark.parametrize("action", ENTRY)
@pytest.mark.parametrize(
    ("entries", "code"),
    [(None, "MissingParameter"), ("x", "SerializationException"), (["x"], "SerializationException")],
)
def test_entries_are_a_list_of_objects(world: World, action: str, entries: object, code: str) -> None:
    assert world.code(action, QueueUrl=world.queue("q"), Entries=entries) == code


def test_what_is_wrong_with_one_entry_fails_that_entry_only(world: World) -> None:
    url = world.queue("q", MaximumMessageSize="1024")
    answer = world.call(
        "SendMessageBatch",
        QueueUrl=url,
        Entries=[
            {"Id": "good", "MessageBody": "x", "DelaySeconds": 0},
            {"Id": "characters", "MessageBody": "\x01"},
            {"Id": "size", "MessageBody": "x" * 1025},
            {"Id": "delay", "MessageBody": "x", "DelaySeconds": 901},
            {"Id": "group", "MessageBody": "x", "MessageGroupId": "a b"},
        ],
    )
    assert [entry["Id"] for entry in answer["Successful"]] == ["good"]
    assert [(entry["Id"], entry["Code"], entry["SenderFault"]) for entry in answer["Failed"]] == [
        ("characters", "InvalidMessageContents", True),
        ("size", "InvalidParameterValue", True),
        ("delay", "InvalidParameterValue", True),
        ("group", "InvalidParameterValue", True),
    ]
    assert answer["Failed"][1]["Message"] == (
        "One or more parameters cannot be validated. Reason: Message must be shorter than 1024 bytes."
    )
    assert world.bodies(url) == ["x"]


def test_a_batch_has_at_most_one_mebibyte_altogether(world: World) -> None:
    url = world.queue("q")
    half = {"MessageBody": "x" * 524_288}
    world.call("SendMessageBatch", QueueUrl=url, Entries=[{"Id": "1", **half}, {"Id": "2", **half}])
    entries = [{"Id": "1", **half}, {"Id": "2", **half}, {"Id": "3", "MessageBody": "x"}]
    assert world.refusal("SendMessageBatch", QueueUrl=url, Entries=entries) == (
        "AWS.SimpleQueueService.BatchRequestTooLong",
        "Batch requests cannot be longer than 1048576 bytes. You have sent 1048577 bytes.",
    )
    assert world.counts(url) == (2, 0, 0)


def test_a_batch_is_enqueued_in_its_order(world: World) -> None:
    url = world.queue("q.fifo")
    entries = [
        {"Id": str(n), "MessageBody": str(n), "MessageGroupId": "g", "MessageDeduplicationId": str(n % 4)}
        for n in range(6)
    ]
    answer = world.call("SendMessageBatch", QueueUrl=url, Entries=entries)
    assert "Failed" not in answer
    ids = [entry["MessageId"] for entry in answer["Successful"]]
    assert ids[4:] == ids[:2]
    assert world.bodies(url) == ["0", "1", "2", "3"]


def test_deletes_and_changes_of_a_batch_stand_alone(world: World) -> None:
    url = world.queue("q")
    for body in "abc":
        world.send(url, body)
    first, second, third = world.receive(url)
    world.later(10)
    answer = world.call(
        "ChangeMessageVisibilityBatch",
        QueueUrl=url,
        Entries=[
            {"Id": "free", "ReceiptHandle": first["ReceiptHandle"], "VisibilityTimeout": 0},
            {"Id": "bad", "ReceiptHandle": "garbage", "VisibilityTimeout": 0},
            {"Id": "much", "ReceiptHandle": second["ReceiptHandle"], "VisibilityTimeout": 43_200},
            {"Id": "none", "ReceiptHandle": second["ReceiptHandle"]},
        ],
    )
    assert answer["Successful"] == [{"Id": "free"}]
    assert [(entry["Id"], entry["Code"]) for entry in answer["Failed"]] == [
        ("bad", "ReceiptHandleIsInvalid"),
        ("much", "InvalidParameterValue"),
        ("none", "MissingParameter"),
    ]
    handles = {"good": second["ReceiptHandle"], "bad": "garbage", "also": third["ReceiptHandle"]}
    entries = [{"Id": name, "ReceiptHandle": handle} for name, handle in handles.items()]
    answer = world.call("DeleteMessageBatch", QueueUrl=url, Entries=entries)
    assert answer["Successful"] == [{"Id": "good"}, {"Id": "also"}]
    assert [(entry["Id"], entry["Code"]) for entry in answer["Failed"]] == [("bad", "ReceiptHandleIsInvalid")]
    assert world.bodies(url) == ["a"]
