"""On the wire: bytes and attributes as they were, additions where there is room, batch-mates of poison go on."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from tests.reprocessing.pipeline.bench import Workbench, redriven

pytestmark = pytest.mark.django_db(transaction=True)

ADDED = {"RedriveId", "IdempotencyKey", "OriginalMessageId", "ReprocessedFrom"}
OF_EVERY_TYPE: dict[str, Any] = {
    "text": {"DataType": "String", "StringValue": "ä\u2028\U0001f600 \t"},
    "labelled": {"DataType": "String.json", "StringValue": '{"a": 1}'},
    "number": {"DataType": "Number", "StringValue": "-1.50e10"},
    "integer": {"DataType": "Number.int", "StringValue": "007"},
    "binary": {"DataType": "Binary", "BinaryValue": bytes(range(256))},
    "picture": {"DataType": "Binary.png", "BinaryValue": b"\x89PNG\x00\xff"},
}


def _through(bench: Workbench, body: str, attributes: dict[str, Any], **system: object) -> dict[str, Any]:
    group = {"MessageGroupId": "account-7", "MessageDeduplicationId": uuid.uuid4().hex} if bench.fifo else {}
    bench.sqs.send_message(
        QueueUrl=bench.dlq_url, MessageBody=body, MessageAttributes=attributes, **group, **system
    )  # fmt: skip
    bench.ready()
    bench.replay()
    (sent,) = bench.delivered()
    return sent


@pytest.mark.parametrize("fifo", [False, True])
def test_body_and_attributes_of_every_type_arrive_unchanged(fifo: bool) -> None:
    bench = Workbench(fifo=fifo)
    body = '{"n": 1.0,\r\n "t": "\t ä \U0001f600\u2028"}  '
    sent = _through(bench, body, OF_EVERY_TYPE)
    assert sent["Body"] == body
    assert {name: one for name, one in sent["MessageAttributes"].items() if name not in ADDED} == OF_EVERY_TYPE
    assert set(sent["MessageAttributes"]) >= ADDED


def test_the_redrive_attributes_name_letter_attempt_and_dlq() -> None:
    bench = Workbench()
    sent = _through(bench, "letter", {})
    letter = bench.letter()
    assert {name: one["StringValue"] for name, one in sent["MessageAttributes"].items()} == {
        "RedriveId": f"{letter.public_id}:1",
        "IdempotencyKey": letter.message_id,
        "OriginalMessageId": letter.message_id,
        "ReprocessedFrom": bench.name,
    }


@pytest.mark.parametrize(("own", "added"), [(10, []), (9, ["RedriveId"]), (8, ["IdempotencyKey", "RedriveId"])])
def test_the_letter_s_own_attributes_come_first_and_ten_are_the_limit(own: int, added: list[str]) -> None:
    bench = Workbench()
    attributes = {f"own{number}": {"DataType": "String", "StringValue": str(number)} for number in range(own)}
    sent = _through(bench, "letter", attributes)["MessageAttributes"]
    assert {name: one for name, one in sent.items() if name in attributes} == attributes
    assert sorted(sent.keys() - attributes.keys()) == added


def test_a_letter_without_room_goes_without_redrive_attributes() -> None:
    bench = Workbench()
    sent = _through(bench, "x" * (1_048_576 - 5), {})
    assert (len(sent["Body"]), sent.get("MessageAttributes", {})) == (1_048_571, {})


def test_group_deduplication_id_and_trace_header_are_sent() -> None:
    bench = Workbench(fifo=True)
    trace = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1"
    sent = _through(
        bench, "letter", {}, MessageSystemAttributes={"AWSTraceHeader": {"DataType": "String", "StringValue": trace}}
    )
    assert sent["Attributes"]["MessageGroupId"] == "account-7"
    assert sent["Attributes"]["AWSTraceHeader"] == trace
    assert len(sent["Attributes"]["MessageDeduplicationId"]) == 64


def test_a_letter_sent_again_has_one_redrive_id() -> None:
    bench = redriven("letter")
    bench.come_back(bench.delivered()[0])
    bench.capture()
    bench.replay()
    (sent,) = bench.delivered()
    assert set(sent["MessageAttributes"]) == ADDED
    assert sent["MessageAttributes"]["RedriveId"]["StringValue"] == f"{bench.letter().public_id}:2"
