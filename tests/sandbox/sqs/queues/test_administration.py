from __future__ import annotations

import pytest

from redrive_service.sandbox.sqs.actions.registry import ACTIONS
from tests.sandbox.sqs.world import World, arn


def test_creating_again_with_the_same_attributes_gives_the_same_queue(world: World) -> None:
    url = world.queue("q", VisibilityTimeout="7")
    assert world.queue("q") == url
    assert world.queue("q", VisibilityTimeout="07", DelaySeconds="0") == url
    assert world.refusal("CreateQueue", QueueName="q", Attributes={"VisibilityTimeout": "8"}) == (
        "QueueAlreadyExists",
        "A queue already exists with the same name and a different value for attribute VisibilityTimeout",
    )
    world.set(url, VisibilityTimeout="8")
    assert world.queue("q", VisibilityTimeout="8") == url


def test_a_handle_of_a_deleted_queue_is_none_of_its_successor(world: World) -> None:
    url = world.queue("q")
    world.send(url, "x")
    (message,) = world.receive(url)
    world.call("DeleteQueue", QueueUrl=url)
    world.later(60)
    world.send(world.queue("q"), "y")
    assert world.code("DeleteMessage", QueueUrl=url, ReceiptHandle=message["ReceiptHandle"]) == "ReceiptHandleIsInvalid"


@pytest.mark.parametrize(("name", "fifo"), [("é", False), (".fifo", False), (".fifo", True), ("x.fif", True)])
def test_names_that_sqs_does_not_take_are_refused(world: World, name: str, fifo: bool) -> None:
    attributes = {"FifoQueue": "true"} if fifo else {}
    assert world.code("CreateQueue", QueueName=name, Attributes=attributes) == "InvalidParameterValue"


def test_numbers_have_ranges_and_decimal_digits(world: World) -> None:
    url, name, low, high = world.queue("q"), "KmsDataKeyReusePeriodSeconds", 60, 86_400
    for good in (low, high):
        world.set(url, **{name: str(good)})
        assert world.attribute(url, name) == str(good)
    for bad in (str(low - 1), str(high + 1), "x", "", "1.5", "٣", "9" * 5000):
        assert world.code("SetQueueAttributes", QueueUrl=url, Attributes={name: bad}) == "InvalidAttributeValue"
        assert world.code("CreateQueue", QueueName="r", Attributes={name: bad}) == "InvalidAttributeValue"
    assert world.attribute(url, name) == str(high)


@pytest.mark.parametrize(
    ("attributes", "code"),
    [
        ({"QueueArn": "x"}, "InvalidAttributeName"),
        ({"All": "x"}, "InvalidAttributeName"),
        ({"FifoQueue": "false"}, "InvalidAttributeName"),
        ({"SqsManagedSseEnabled": "perhaps"}, "InvalidAttributeValue"),
        ({"Policy": "no json"}, "InvalidAttributeValue"),
        ({"KmsMasterKeyId": "key", "SqsManagedSseEnabled": "true"}, "InvalidAttributeName"),
        ({"VisibilityTimeout": 30}, "SerializationException"),
        ("text", "SerializationException"),
        ({"KmsMasterKeyId": "\ud800"}, "SerializationException"),
    ],
)
def test_attributes_a_standard_queue_does_not_take(world: World, attributes: object, code: str) -> None:
    assert world.code("SetQueueAttributes", QueueUrl=world.queue("q"), Attributes=attributes) == code


@pytest.mark.parametrize(
    "attributes",
    [{"FifoThroughputLimit": "perMessageGroupId", "DeduplicationScope": "queue"}, {"DeduplicationScope": "planet"}],
)
def test_attributes_a_fifo_queue_does_not_take(world: World, attributes: dict[str, str]) -> None:
    url = world.queue("q.fifo")
    assert world.code("SetQueueAttributes", QueueUrl=url, Attributes=attributes) == "InvalidAttributeValue"


def test_all_attributes_are_shown_as_aws_shows_them(world: World) -> None:
    url = world.queue("q.fifo", ContentBasedDeduplication="True")
    world.later(5)
    world.set(url, VisibilityTimeout="5")
    assert world.call("GetQueueAttributes", QueueUrl=url, AttributeNames=["All"])["Attributes"] == {
        "ApproximateNumberOfMessages": "0",
        "ApproximateNumberOfMessagesDelayed": "0",
        "ApproximateNumberOfMessagesNotVisible": "0",
        "ContentBasedDeduplication": "true",
        "CreatedTimestamp": "1800000000",
        "DeduplicationScope": "queue",
        "DelaySeconds": "0",
        "FifoQueue": "true",
        "FifoThroughputLimit": "perQueue",
        "LastModifiedTimestamp": "1800000005",
        "MaximumMessageSize": "1048576",
        "MessageRetentionPeriod": "345600",
        "QueueArn": arn("q.fifo"),
        "ReceiveMessageWaitTimeSeconds": "0",
        "SqsManagedSseEnabled": "true",
        "VisibilityTimeout": "5",
    }


def test_a_queue_is_found_by_its_name_in_this_account_only(world: World) -> None:
    url = world.queue("q")
    assert world.call("GetQueueUrl", QueueName="q") == {"QueueUrl": url}
    for parameters in ({"QueueName": "r"}, {"QueueName": "q", "QueueOwnerAWSAccountId": "123456789012"}):
        assert world.code("GetQueueUrl", **parameters) == "AWS.SimpleQueueService.NonExistentQueue"
    world.send("q", "a bare name is an address too")
    for wrong in ("http://x/123456789012/q", "http://x/000000000000/r", "r", "http://x/q"):
        code = world.code("SendMessage", QueueUrl=wrong, MessageBody="x")
        assert code == "AWS.SimpleQueueService.NonExistentQueue"


def test_tags_have_limits(world: World) -> None:
    url = world.queue("q")
    for bad in ({str(n): "" for n in range(51)}, {"": "x"}, {"k" * 129: ""}, {"k": "v" * 257}):
        assert world.code("TagQueue", QueueUrl=url, Tags=bad) == "InvalidParameterValue"
    assert world.code("TagQueue", QueueUrl=url) == "MissingParameter"
    assert world.code("UntagQueue", QueueUrl=url) == "MissingParameter"


def test_permissions_are_not_supported(world: World) -> None:
    url = world.queue("q")
    for action in ("AddPermission", "RemovePermission"):
        assert world.code(action, QueueUrl=url) == "AWS.SimpleQueueService.UnsupportedOperation"


ODD_NAMES = ["QueueUrl", "QueueName", "SourceArn", "TaskHandle", "MaxResults", "QueueNamePrefix"]
ODD_VALUES: list[object] = [7, True, [], {}, "\ud800"]
ODD: list[dict[str, object]] = [{}, *({name: value} for name in ODD_NAMES for value in ODD_VALUES)]


@pytest.mark.parametrize("action", sorted(ACTIONS))
@pytest.mark.parametrize("parameters", ODD)
def test_no_action_trips_over_odd_parameters(world: World, action: str, parameters: dict[str, object]) -> None:
    harmless = parameters in ({"QueueNamePrefix": "\ud800"}, {"MaxResults": 7})
    if action == "ListQueues" and (harmless or not parameters.keys() & {"MaxResults", "QueueNamePrefix"}):
        assert world.call(action, **parameters) == {}
    else:
        assert world.code(action, **parameters) in {
            "MissingParameter",
            "SerializationException",
            "InvalidParameterValue",
            "ResourceNotFoundException",
            "AWS.SimpleQueueService.NonExistentQueue",
        }


@pytest.mark.parametrize(
    ("parameters", "code"),
    [
        ({"MaxNumberOfMessages": "1"}, "SerializationException"),
        ({"MaxNumberOfMessages": True}, "SerializationException"),
        ({"MaxNumberOfMessages": 1.0}, "SerializationException"),
        ({"ReceiveRequestAttemptId": "only for FIFO"}, "InvalidParameterValue"),
        ({"ReceiveRequestAttemptId": "only-for-FIFO"}, "InvalidParameterValue"),
        ({"AttributeNames": "All"}, "SerializationException"),
        ({"MessageAttributeNames": [1]}, "SerializationException"),
    ],
)
def test_a_receive_with_odd_parameters_is_refused(world: World, parameters: dict[str, object], code: str) -> None:
    assert world.code("ReceiveMessage", QueueUrl=world.queue("q"), **parameters) == code


@pytest.mark.parametrize(
    ("parameters", "code"),
    [
        ({"DelaySeconds": "1"}, "SerializationException"),
        ({"MessageDeduplicationId": "only-for-FIFO"}, "InvalidParameterValue"),
        ({"MessageGroupId": ""}, "InvalidParameterValue"),
        ({"MessageGroupId": 7}, "SerializationException"),
        ({"MessageBody": 7}, "SerializationException"),
    ],
)
def test_a_send_with_odd_parameters_is_refused(world: World, parameters: dict[str, object], code: str) -> None:
    url = world.queue("q")
    assert world.code("SendMessage", **{"QueueUrl": url, "MessageBody": "x", **parameters}) == code
    assert world.counts(url) == (0, 0, 0)


def test_a_page_token_that_is_none_is_refused(world: World) -> None:
    assert world.code("ListQueues", NextToken="é") == "InvalidParameterValue"


@pytest.mark.soak
def test_equal_dice_and_calls_give_equal_answers() -> None:
    answers = []
    for _ in range(2):
        world = World(seed=7)
        url = world.queue("q")
        world.send(url, "x")
        answers.append(world.receive(url))
    assert answers[0] == answers[1]
