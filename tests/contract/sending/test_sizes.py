"""How large a message may be: bytes, not characters, and attributes count."""

from __future__ import annotations

import pytest

from tests.contract.conftest import MakeQueue
from tests.contract.queues import MIB, Queue, refused

LIMIT = 1024


@pytest.fixture
def small(make_queue: MakeQueue) -> Queue:
    """A queue that takes messages of at most 1 KiB, the smallest limit there is."""
    return make_queue(MaximumMessageSize=str(LIMIT))


def test_a_body_of_one_mebibyte_arrives(queue: Queue) -> None:
    body = "a" * MIB
    queue.send(body)
    assert queue.receive_one()["Body"] == body


def test_a_body_over_one_mebibyte_is_refused(queue: Queue) -> None:
    assert refused(queue.send, "a" * (MIB + 1)) == "InvalidParameterValue"


def test_a_queue_may_take_less(small: Queue) -> None:
    small.send("a" * LIMIT)
    assert refused(small.send, "a" * (LIMIT + 1)) == "InvalidParameterValue"
    assert small.bodies() == ["a" * LIMIT]


def test_size_is_counted_in_bytes(small: Queue) -> None:
    small.send("é" * (LIMIT // 2))
    assert refused(small.send, "é" * (LIMIT // 2) + "a") == "InvalidParameterValue"


def test_size_counts_names_types_and_values_of_attributes(small: Queue) -> None:
    attributes = {
        "name": {"DataType": "String.label", "StringValue": "é"},
        "raw": {"DataType": "Binary", "BinaryValue": b"\x00\x01\x02"},
    }
    size = len("name" + "String.label") + len("é".encode()) + len("raw" + "Binary") + 3
    small.send("a" * (LIMIT - size), MessageAttributes=attributes)
    too_long = "a" * (LIMIT - size + 1)
    assert refused(small.send, too_long, MessageAttributes=attributes) == "InvalidParameterValue"


def test_the_trace_header_does_not_count(small: Queue) -> None:
    header = {"DataType": "String", "StringValue": "Root=1-5759e988-bd862e3fe1be46a994272793"}
    small.send("a" * LIMIT, MessageSystemAttributes={"AWSTraceHeader": header})
    assert small.bodies() == ["a" * LIMIT]


def test_a_batch_may_be_one_mebibyte_altogether(queue: Queue) -> None:
    half = "a" * (MIB // 2)
    answer = queue.send_batch({"Id": "a", "MessageBody": half}, {"Id": "b", "MessageBody": half})
    assert [entry["Id"] for entry in answer["Successful"]] == ["a", "b"]


def test_a_batch_over_one_mebibyte_is_refused_whole(queue: Queue) -> None:
    half = "a" * (MIB // 2)
    entries = ({"Id": "a", "MessageBody": half}, {"Id": "b", "MessageBody": half + "a"})
    assert refused(queue.send_batch, *entries) == "AWS.SimpleQueueService.BatchRequestTooLong"
    assert queue.bodies() == []


def test_a_batch_counts_bytes_and_attributes(queue: Queue) -> None:
    attribute = {"k": {"DataType": "String", "StringValue": "é"}}
    size = len("k" + "String") + len("é".encode())
    long = {"Id": "a", "MessageBody": "a" * (MIB - size - 1), "MessageAttributes": attribute}
    queue.send_batch(long, {"Id": "b", "MessageBody": "b"})
    too_long = (long, {"Id": "b", "MessageBody": "é"})
    assert refused(queue.send_batch, *too_long) == "AWS.SimpleQueueService.BatchRequestTooLong"


def test_one_entry_over_the_queues_limit_fails_alone(small: Queue) -> None:
    answer = small.send_batch({"Id": "a", "MessageBody": "fits"}, {"Id": "b", "MessageBody": "b" * (LIMIT + 1)})
    assert [entry["Id"] for entry in answer["Successful"]] == ["a"]
    assert [(entry["Id"], entry["Code"], entry["SenderFault"]) for entry in answer["Failed"]] == [
        ("b", "InvalidParameterValue", True)
    ]
    assert small.bodies() == ["fits"]
