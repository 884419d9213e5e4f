"""What a message carries: text, attributes of every type, digests, system attributes."""

from __future__ import annotations

import pytest

from tests.contract.conftest import Advance
from tests.contract.digests import attributes_digest, body_digest
from tests.contract.queues import Boto, Queue, refused, system

TEXTS = {
    "one-character": "x",
    "spaces": "  leading and trailing  ",
    "line-ends": "tab\tline\nreturn\rboth\r\n",
    "json": '{"a": [1, 2.50, null], "b": "\\u00e9 \\"quoted\\""}',
    "markup": "<a href='x'>&amp;&#10;</a>",
    "percent": "100%25 +a%20b",
    "accents": "Zürich naïve Ελλάδα",
    "emoji": "👩‍👩‍👧 🏴 🎉",
    "first-and-last-allowed": "\t\n\r \ud7ff\ue000\ufffd\U00010000\U0010ffff",
}
EVERY_TYPE: dict[str, Boto] = {
    "text": {"DataType": "String", "StringValue": "plain"},
    "unicode": {"DataType": "String", "StringValue": "é 漢字 👩‍👩‍👧 \t\n"},
    "text.label": {"DataType": "String.uuid", "StringValue": "a8098c1a"},
    "number": {"DataType": "Number", "StringValue": "-42"},
    "number.label": {"DataType": "Number.float", "StringValue": "12345678901234567.125"},
    "binary": {"DataType": "Binary", "BinaryValue": bytes(range(256))},
    "binary.label": {"DataType": "Binary.gif", "BinaryValue": b"\x00"},
    "Dashed-and_underscored": {"DataType": "String", "StringValue": "x"},
    "12345": {"DataType": "String.many.dots.in.a-label", "StringValue": "y"},
    "n" * 256: {"DataType": "String", "StringValue": "long name"},
}
TRACE = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1"


def text(value: str = "v", data_type: str = "String") -> dict[str, str]:
    return {"DataType": data_type, "StringValue": value}


@pytest.mark.parametrize("body", TEXTS.values(), ids=TEXTS)
def test_a_body_arrives_as_it_was_sent(queue: Queue, body: str) -> None:
    sent = queue.send(body)
    received = queue.receive_one()
    assert received["Body"] == body
    assert (sent["MD5OfMessageBody"], received["MD5OfBody"]) == (body_digest(body), body_digest(body))
    assert received["MessageId"] == sent["MessageId"]


def test_attributes_of_every_type_arrive_byte_for_byte(queue: Queue) -> None:
    queue.send("m", MessageAttributes=EVERY_TYPE)
    assert queue.receive_one()["MessageAttributes"] == EVERY_TYPE


def test_the_digest_covers_every_attribute(queue: Queue) -> None:
    sent = queue.send("m", MessageAttributes=EVERY_TYPE)
    received = queue.receive_one()
    assert sent["MD5OfMessageAttributes"] == attributes_digest(EVERY_TYPE)
    assert received["MD5OfMessageAttributes"] == attributes_digest(EVERY_TYPE)


def test_only_the_attributes_asked_for_arrive_and_are_digested(queue: Queue) -> None:
    attributes = {name: text(name) for name in ("red", "blue", "bar.one", "bar.two", "bartender")}
    queue.send("m", MessageAttributes=attributes)

    def received(*names: str) -> tuple[list[str], str | None]:
        message = queue.receive_one(MessageAttributeNames=names, VisibilityTimeout=0)
        digest = message.get("MD5OfMessageAttributes")
        return sorted(message.get("MessageAttributes", {})), digest

    def expected(*names: str) -> tuple[list[str], str | None]:
        return sorted(names), attributes_digest({name: attributes[name] for name in names}) if names else None

    assert received() == expected()
    assert received("red", "green") == expected("red")
    assert received("bar.*") == expected("bar.one", "bar.two", "bartender")
    assert received("All") == expected(*attributes)
    assert received(".*") == expected(*attributes)


def test_system_attributes_arrive_only_when_asked_for(queue: Queue) -> None:
    queue.send("m")
    unasked = queue.receive_one(MessageSystemAttributeNames=[], VisibilityTimeout=0)
    one = queue.receive_one(MessageSystemAttributeNames=["ApproximateReceiveCount"], VisibilityTimeout=0)
    by_the_old_name = queue.receive_one(
        MessageSystemAttributeNames=[], AttributeNames=["ApproximateReceiveCount"], VisibilityTimeout=0
    )
    assert "Attributes" not in unasked
    assert one["Attributes"] == {"ApproximateReceiveCount": "2"}
    assert by_the_old_name["Attributes"] == {"ApproximateReceiveCount": "3"}


def test_times_are_milliseconds_and_the_first_receive_is_remembered(queue: Queue, advance: Advance) -> None:
    before = advance(0) * 1000
    queue.send("m")
    advance(100)
    first = system(queue.receive_one(VisibilityTimeout=0))
    advance(100)
    second = system(queue.receive_one())
    sent_at = int(first["SentTimestamp"])
    first_received_at = int(first["ApproximateFirstReceiveTimestamp"])
    assert 0 <= sent_at - int(before) < 60_000
    assert 100_000 <= first_received_at - sent_at < 160_000
    assert (second["SentTimestamp"], second["ApproximateFirstReceiveTimestamp"]) == (
        first["SentTimestamp"],
        first["ApproximateFirstReceiveTimestamp"],
    )


def test_a_standard_message_has_no_fifo_attributes(queue: Queue) -> None:
    queue.send("m")
    names = {"SequenceNumber", "MessageDeduplicationId", "MessageGroupId", "DeadLetterQueueSourceArn"}
    assert names & set(system(queue.receive_one())) == set()


def test_ten_attributes_are_the_limit(queue: Queue) -> None:
    ten = {f"a{n}": text() for n in range(10)}
    queue.send("ten", MessageAttributes=ten)
    assert refused(queue.send, "eleven", MessageAttributes={**ten, "a10": text()}) == "InvalidParameterValue"
    assert queue.bodies() == ["ten"]


@pytest.mark.parametrize(
    "name",
    ["AWS.x", "aws.x", "Amazon.x", "AMAZON.x", ".x", "x.", "x..y", "with space", "x!", "n" * 257],
    ids=["AWS", "aws", "Amazon", "AMAZON", "first-dot", "last-dot", "two-dots", "space", "punctuation", "257"],
)
def test_an_attribute_name_that_breaks_the_rules_is_refused(queue: Queue, name: str) -> None:
    assert refused(queue.send, MessageAttributes={name: text()}) == "InvalidParameterValue"


@pytest.mark.parametrize(
    "value",
    [
        text(data_type="Text"),
        text(data_type="string"),
        text(data_type="String." + "l" * 250),
        text(""),
        text("not a number", "Number"),
        {"DataType": "Binary", "BinaryValue": b""},
        {"DataType": "String"},
        text(data_type=""),
    ],
    ids=["unknown-type", "type-case", "type-257", "empty", "nan", "empty-binary", "no-value", "empty-type"],
)
def test_an_attribute_value_that_breaks_the_rules_is_refused(queue: Queue, value: Boto) -> None:
    assert refused(queue.send, MessageAttributes={"a": value}) == "InvalidParameterValue"


def test_an_empty_body_is_refused(queue: Queue) -> None:
    assert refused(queue.send, "") == "MissingParameter"


@pytest.mark.parametrize("code_point", ["0000", "0001", "000B", "001F", "D800", "FFFE", "FFFF"])
def test_a_character_outside_the_allowed_set_is_refused(queue: Queue, code_point: str) -> None:
    assert refused(queue.send, f"before{chr(int(code_point, 16))}after") == "InvalidMessageContents"
    assert queue.bodies() == []


def test_a_character_outside_the_allowed_set_is_refused_in_an_attribute(queue: Queue) -> None:
    refused(queue.send, MessageAttributes={"a": text("before\x01after")})
    assert queue.bodies() == []


def test_the_trace_header_travels_with_the_message(queue: Queue) -> None:
    header = {"AWSTraceHeader": text(TRACE)}
    sent = queue.send("m", MessageSystemAttributes=header, MessageAttributes={"a": text()})
    received = queue.receive_one()
    assert system(received)["AWSTraceHeader"] == TRACE
    assert received["MessageAttributes"] == {"a": text()}
    assert sent["MD5OfMessageAttributes"] == attributes_digest({"a": text()})


def test_the_trace_header_has_a_digest_of_its_own(queue: Queue) -> None:
    header = {"AWSTraceHeader": text(TRACE)}
    sent = queue.send("m", MessageSystemAttributes=header)
    assert sent["MD5OfMessageSystemAttributes"] == attributes_digest(header)


@pytest.mark.parametrize(
    "header",
    [{"AWSTraceHeader": {"DataType": "Binary", "BinaryValue": b"Root=1"}}, {"Colour": text()}],
    ids=["not-text", "another-name"],
)
def test_no_other_system_attribute_can_be_sent(queue: Queue, header: Boto) -> None:
    refused(queue.send, MessageSystemAttributes=header)
    assert queue.bodies() == []


def test_a_trace_header_travels_in_a_batch(queue: Queue) -> None:
    queue.send_batch({"Id": "a", "MessageBody": "m", "MessageSystemAttributes": {"AWSTraceHeader": text(TRACE)}})
    assert system(queue.receive_one())["AWSTraceHeader"] == TRACE


def test_a_group_id_on_a_standard_queue_is_kept_and_blocks_nobody(queue: Queue) -> None:
    for body in ("one", "two"):
        queue.send(body, MessageGroupId="tenant-7")
    first, second = queue.receive_one(most=1), queue.receive_one(most=1)
    assert {first["Body"], second["Body"]} == {"one", "two"}
    assert [system(message)["MessageGroupId"] for message in (first, second)] == ["tenant-7", "tenant-7"]


@pytest.mark.parametrize("group", ["", "g" * 129, "with space"], ids=["empty", "129", "space"])
def test_a_group_id_on_a_standard_queue_obeys_the_rules(queue: Queue, group: str) -> None:
    assert refused(queue.send, MessageGroupId=group) == "InvalidParameterValue"
