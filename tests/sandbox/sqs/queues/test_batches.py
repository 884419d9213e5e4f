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
