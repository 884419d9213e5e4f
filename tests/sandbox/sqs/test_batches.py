from __future__ import annotations

import pytest

from tests.sandbox.sqs.world import World

ENTRY: dict[str, dict[str, object]] = {
    "SendMessageBatch": {"MessageBody": "x"},
    "DeleteMessageBatch": {"ReceiptHandle": "x"},
    "ChangeMessageVisibilityBatch": {"ReceiptHandle": "x", "VisibilityTimeout": 1},
}


@pytest.mark.parametrize("action", ENTRY)
@pytest.mark.parametrize(("entry_id", "code"), [(None, "MissingParameter"), (1, "SerializationException")])
def test_an_entry_has_an_id_that_is_text(world: World, action: str, entry_id: object, code: str) -> None:
    entries = [{"Id": entry_id, **ENTRY[action]}]
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
