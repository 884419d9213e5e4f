from __future__ import annotations

from base64 import b64encode
from hashlib import md5

import pytest

from tests.sandbox.sqs.world import World


def attribute(value: str, kind: str = "String") -> dict[str, dict[str, str]]:
    return {"name": {"DataType": kind, "StringValue": value}}


def framed(text: bytes) -> bytes:
    return len(text).to_bytes(4, "big") + text


def test_digests_are_what_aws_defines(world: World) -> None:
    url = world.queue("q")
    attributes = {
        "b": {"DataType": "Binary.gz", "BinaryValue": b64encode(b"\x00\xff").decode()},
        "a": {"DataType": "String", "StringValue": "ü"},
        "n": {"DataType": "Number.int", "StringValue": "-1.50e3"},
    }
    header = {"AWSTraceHeader": {"DataType": "String", "StringValue": "Root=1"}}
    answer = world.send(url, "body ☃", MessageAttributes=attributes, MessageSystemAttributes=header)
    parts = [
        framed(b"a") + framed(b"String") + b"\x01" + framed("ü".encode()),
        framed(b"b") + framed(b"Binary.gz") + b"\x02" + framed(b"\x00\xff"),
        framed(b"n") + framed(b"Number.int") + b"\x01" + framed(b"-1.50e3"),
    ]
    trace = framed(b"AWSTraceHeader") + framed(b"String") + b"\x01" + framed(b"Root=1")
    assert answer["MD5OfMessageBody"] == md5("body ☃".encode()).hexdigest()
    assert answer["MD5OfMessageAttributes"] == md5(b"".join(parts)).hexdigest()
    assert answer["MD5OfMessageSystemAttributes"] == md5(trace).hexdigest()
    (message,) = world.receive(url)
    assert message["MessageAttributes"] == attributes
    assert message["MD5OfMessageAttributes"] == answer["MD5OfMessageAttributes"]
    assert message["MD5OfBody"] == answer["MD5OfMessageBody"]


def test_a_digest_recorded_from_aws_is_reproduced(world: World) -> None:
    names = {"General": "Kenobi", "Hello": "There", "Help.Me": "Me"}
    attributes = {name: {"DataType": "String", "StringValue": value} for name, value in names.items()}
    answer = world.send(world.queue("q"), "msg", MessageAttributes=attributes)
    assert answer["MD5OfMessageAttributes"] == "4c360f3fdafd970e05fae2f149d997f5"
    assert answer["MD5OfMessageBody"] == "6e2baaf3b97dbeef01c0043275f9a0e7"


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        ([], []),
        (["All"], ["General", "Hello", "Help.Me"]),
        ([".*"], ["General", "Hello", "Help.Me"]),
        (["Hello", "nothing"], ["Hello"]),
        (["Hel.*"], ["Hello", "Help.Me"]),
        (["Help.*"], ["Help.Me"]),
        (["Hel"], []),
    ],
)
def test_a_receive_gives_the_attributes_it_asks_for(world: World, asked: list[str], given: list[str]) -> None:
    url = world.queue("q")
    attributes = {name: {"DataType": "String", "StringValue": "x"} for name in ("General", "Hello", "Help.Me")}
    world.send(url, "msg", MessageAttributes=attributes)
    (message,) = world.call("ReceiveMessage", QueueUrl=url, MessageAttributeNames=asked)["Messages"]
    assert sorted(message.get("MessageAttributes", {})) == given
    assert ("MD5OfMessageAttributes" in message) is bool(given)


@pytest.mark.parametrize("parameter", ["AttributeNames", "MessageSystemAttributeNames"])
def test_system_attributes_are_given_by_either_name(world: World, parameter: str) -> None:
    url = world.queue("q")
    world.send(url, "msg")
    names = ["SenderId", "MessageGroupId"]
    (message,) = world.call("ReceiveMessage", QueueUrl=url, VisibilityTimeout=0, **{parameter: names})["Messages"]
    assert sorted(message["Attributes"]) == ["SenderId"]
    assert world.code("ReceiveMessage", QueueUrl=url, **{parameter: ["Nonsense"]}) == "InvalidAttributeName"


@pytest.mark.parametrize(
    "attributes",
    [
        attribute(""),
        attribute("x", ""),
        attribute("x", "Text"),
        attribute("x", "String."),
        attribute("x", "String.a b"),
        attribute("x", "Number." + "L" * 256),
        attribute("abc", "Number"),
        attribute("1" * 39, "Number"),
        attribute("१", "Number"),
        {"name": {"DataType": "Binary", "StringValue": "x"}},
        {"name": {"DataType": "String", "BinaryValue": "eA=="}},
        {"name": {"DataType": "String", "StringValue": "x", "BinaryValue": "eA=="}},
        {"name": {"DataType": "Binary", "BinaryValue": ""}},
        {"name": {"StringValue": "x"}},
        {f"name-{n}": {"DataType": "String", "StringValue": "x"} for n in range(11)},
        *(
            {name: {"DataType": "String", "StringValue": "x"}}
            for name in ("", "a b", "a!", "aws.x", "AMAZON.x", ".a", "a.", "a..b", "L" * 257)
        ),
    ],
)
def test_attributes_that_sqs_does_not_take_are_refused(world: World, attributes: dict[str, object]) -> None:
    url = world.queue("q")
    code = world.code("SendMessage", QueueUrl=url, MessageBody="x", MessageAttributes=attributes)
    assert code == "InvalidParameterValue"
    answer = world.call(
        "SendMessageBatch",
        QueueUrl=url,
        Entries=[{"Id": "bad", "MessageBody": "x", "MessageAttributes": attributes}, {"Id": "ok", "MessageBody": "y"}],
    )
    assert [(entry["Id"], entry["Code"], entry["SenderFault"]) for entry in answer["Failed"]] == [
        ("bad", "InvalidParameterValue", True)
    ]
    assert [entry["Id"] for entry in answer["Successful"]] == ["ok"]


@pytest.mark.parametrize("number", ["0", "-7", "+1", "1.5", ".5", "5.", "1e10", "-2.5E-3", "1" * 38, "0" * 5 + "1"])
def test_numbers_arrive_as_they_were_written(world: World, number: str) -> None:
    url = world.queue("q")
    world.send(url, "x", MessageAttributes=attribute(number, "Number"))
    assert world.receive(url)[0]["MessageAttributes"] == attribute(number, "Number")


def test_list_values_are_not_supported(world: World) -> None:
    lists = {"name": {"DataType": "String", "StringListValues": ["a"]}}
    code = world.code("SendMessage", QueueUrl=world.queue("q"), MessageBody="x", MessageAttributes=lists)
    assert code == "AWS.SimpleQueueService.UnsupportedOperation"


@pytest.mark.parametrize(
    "attributes",
    ["text", {"name": "text"}, {"name": {"DataType": 1}}, attribute(7)]  # type: ignore[arg-type]
    + [{"name": {"DataType": "Binary", "BinaryValue": bad}} for bad in ("not base64!", "eA", "é", 5)],
)
def test_values_of_another_type_are_a_serialization_error(world: World, attributes: object) -> None:
    url = world.queue("q")
    code = world.code("SendMessage", QueueUrl=url, MessageBody="x", MessageAttributes=attributes)
    assert code == "SerializationException"


@pytest.mark.parametrize("bad", ["\x00", "\x08", "\x0b", "\x1f", "\ufffe", "\uffff", "\ud800"])
def test_characters_that_xml_lacks_are_refused(world: World, bad: str) -> None:
    url = world.queue("q")
    assert world.code("SendMessage", QueueUrl=url, MessageBody=f"x{bad}") == "InvalidMessageContents"
    attributes = attribute(f"x{bad}")
    code = world.code("SendMessage", QueueUrl=url, MessageBody="x", MessageAttributes=attributes)
    assert code == "InvalidMessageContents"


@pytest.mark.parametrize("good", ["\t\n\r", "\x7f", "é☃", "\ufffd", "\U0001f600", " "])
def test_all_other_characters_arrive(world: World, good: str) -> None:
    url = world.queue("q")
    world.send(url, good, MessageAttributes=attribute(good))
    (message,) = world.receive(url)
    assert (message["Body"], message["MessageAttributes"]) == (good, attribute(good))


def test_sizes_are_bytes_of_body_names_types_and_values(world: World) -> None:
    url = world.queue("q", MaximumMessageSize="1024")
    overhead = len("name") + len("String") + len("ü".encode())
    header = {"AWSTraceHeader": {"DataType": "String", "StringValue": "free of charge" * 100}}
    world.send(url, "é" * 512)
    world.send(url, "x" * (1024 - overhead), MessageAttributes=attribute("ü"), MessageSystemAttributes=header)
    for body, attributes in (("é" * 512 + "x", {}), ("x" * (1025 - overhead), attribute("ü"))):
        assert world.refusal("SendMessage", QueueUrl=url, MessageBody=body, MessageAttributes=attributes) == (
            "InvalidParameterValue",
            "One or more parameters are invalid. Reason: Message must be shorter than 1024 bytes.",
        )


def test_a_message_may_have_one_mebibyte(world: World) -> None:
    url = world.queue("q")
    world.send(url, "x" * 1_048_576)
    assert world.code("SendMessage", QueueUrl=url, MessageBody="x" * 1_048_577) == "InvalidParameterValue"


@pytest.mark.parametrize("body", [{}, {"MessageBody": ""}, {"MessageBody": None}])
def test_a_message_has_a_body(world: World, body: dict[str, object]) -> None:
    url = world.queue("q")
    expected = ("MissingParameter", "The request must contain the parameter MessageBody.")
    assert world.refusal("SendMessage", QueueUrl=url, **body) == expected
    assert world.refusal("SendMessageBatch", QueueUrl=url, Entries=[{"Id": "1", **body}]) == expected


def test_only_the_trace_header_is_a_system_attribute(world: World) -> None:
    url = world.queue("q")
    for header in ({"Other": {"DataType": "String", "StringValue": "x"}},
                   {"AWSTraceHeader": {"DataType": "Number", "StringValue": "1"}}):  # fmt: skip
        code = world.code("SendMessage", QueueUrl=url, MessageBody="x", MessageSystemAttributes=header)
        assert code == "InvalidParameterValue"
