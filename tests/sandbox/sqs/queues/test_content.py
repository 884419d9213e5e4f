from __future__ import annotations

import pytest

from tests.sandbox.sqs.world import World


def attribute(value: str, kind: str = "String") -> dict[str, dict[str, str]]:
    return {"name": {"DataType": kind, "StringValue": value}}


def test_a_digest_recorded_from_aws_is_reproduced(world: World) -> None:
    names = {"General": "Kenobi", "Hello": "There", "Help.Me": "Me"}
    attributes = {name: {"DataType": "String", "StringValue": value} for name, value in names.items()}
    answer = world.send(world.queue("q"), "msg", MessageAttributes=attributes)
    assert answer["MD5OfMessageAttributes"] == "4c360f3fdafd970e05fae2f149d997f5"
    assert answer["MD5OfMessageBody"] == "6e2baaf3b97dbeef01c0043275f9a0e7"


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
        attribute("x", "String."),
        attribute("x", "String.a b"),
        attribute("1" * 39, "Number"),
        attribute("१", "Number"),
        {"name": {"DataType": "Binary", "StringValue": "x"}},
        {"name": {"DataType": "String", "BinaryValue": "eA=="}},
        {"name": {"DataType": "String", "StringValue": "x", "BinaryValue": "eA=="}},
        {"name": {"StringValue": "x"}},
        {"": {"DataType": "String", "StringValue": "x"}},
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


@pytest.mark.parametrize("body", [{}, {"MessageBody": ""}, {"MessageBody": None}])
def test_a_message_has_a_body(world: World, body: dict[str, object]) -> None:
    url = world.queue("q")
    expected = ("MissingParameter", "The request must contain the parameter MessageBody.")
    assert world.refusal("SendMessage", QueueUrl=url, **body) == expected
    assert world.refusal("SendMessageBatch", QueueUrl=url, Entries=[{"Id": "1", **body}]) == expected
