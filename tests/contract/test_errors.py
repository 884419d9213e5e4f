"""Errors as boto3 shows them: the modelled exception, both codes, and the status where AWS's pages agree on it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from botocore.exceptions import ClientError

from tests.contract.conftest import MakeQueue
from tests.contract.queues import MIB, Boto, Queue

SERVICE = "AWS.SimpleQueueService"


def shown(call: Callable[..., object], **parameters: Boto) -> tuple[str, str, str | None, int, str]:
    """Exception name, Error.Code, Error.QueryErrorCode, HTTP status and who is to blame."""
    with pytest.raises(ClientError) as caught:
        call(**parameters)
    response: Boto = caught.value.response
    error = response["Error"]
    status = response["ResponseMetadata"]["HTTPStatusCode"]
    return type(caught.value).__name__, error["Code"], error.get("QueryErrorCode"), status, error.get("Type")


def of_sender(name: str, code: str = "") -> tuple[str, str, str | None, int, str]:
    return name, code or name, name, 400, "Sender"


def test_a_missing_queue(queue: Queue) -> None:
    seen = shown(queue.client.send_message, QueueUrl=f"{queue.url}-nowhere", MessageBody="m")
    assert seen == of_sender("QueueDoesNotExist", f"{SERVICE}.NonExistentQueue")


def test_an_existing_name(make_queue: MakeQueue) -> None:
    queue = make_queue(VisibilityTimeout="77")
    seen = shown(queue.client.create_queue, QueueName=queue.name, Attributes={"VisibilityTimeout": "78"})
    assert seen == of_sender("QueueNameExists", "QueueAlreadyExists")


def test_a_name_deleted_a_moment_ago(queue: Queue) -> None:
    queue.client.delete_queue(QueueUrl=queue.url)
    seen = shown(queue.client.create_queue, QueueName=queue.name)
    assert seen == of_sender("QueueDeletedRecently", f"{SERVICE}.QueueDeletedRecently")


def test_a_malformed_handle(queue: Queue) -> None:
    name, code, query_code, _, blame = shown(queue.client.delete_message, QueueUrl=queue.url, ReceiptHandle="garbage")
    assert (name, code, query_code, blame) == (*["ReceiptHandleIsInvalid"] * 3, "Sender")


def test_a_message_that_is_not_in_flight(queue: Queue) -> None:
    queue.send("m")
    handle = queue.receive_one(VisibilityTimeout=0)["ReceiptHandle"]
    change = queue.client.change_message_visibility
    seen = shown(change, QueueUrl=queue.url, ReceiptHandle=handle, VisibilityTimeout=60)
    assert seen == of_sender("MessageNotInflight", f"{SERVICE}.MessageNotInflight")


def test_a_forbidden_character(queue: Queue) -> None:
    seen = shown(queue.client.send_message, QueueUrl=queue.url, MessageBody="\x01")
    assert seen == of_sender("InvalidMessageContents")


def test_an_unknown_attribute(queue: Queue) -> None:
    seen = shown(queue.client.get_queue_attributes, QueueUrl=queue.url, AttributeNames=["Colour"])
    assert seen == of_sender("InvalidAttributeName")


def test_an_attribute_value_out_of_range(queue: Queue) -> None:
    seen = shown(queue.client.set_queue_attributes, QueueUrl=queue.url, Attributes={"DelaySeconds": "901"})
    assert seen == of_sender("InvalidAttributeValue")


def test_a_parameter_out_of_range(queue: Queue) -> None:
    seen = shown(queue.client.receive_message, QueueUrl=queue.url, MaxNumberOfMessages=11)
    assert seen == ("ClientError", "InvalidParameterValue", "InvalidParameterValueException", 400, "Sender")


def test_a_missing_parameter(fifo: Queue) -> None:
    seen = shown(fifo.client.send_message, QueueUrl=fifo.url, MessageBody="m", MessageDeduplicationId="d")
    assert seen == ("ClientError", "MissingParameter", "MissingRequiredParameterException", 400, "Sender")


@pytest.mark.parametrize(
    ("name", "entries"),
    [
        ("EmptyBatchRequest", []),
        ("TooManyEntriesInBatchRequest", [{"Id": str(n), "MessageBody": "m"} for n in range(11)]),
        ("BatchEntryIdsNotDistinct", [{"Id": "a", "MessageBody": "m"}] * 2),
        ("InvalidBatchEntryId", [{"Id": "a b", "MessageBody": "m"}]),
        ("BatchRequestTooLong", [{"Id": str(n), "MessageBody": "m" * (MIB // 2 + 1)} for n in range(2)]),
    ],
    ids=["empty", "too-many", "not-distinct", "invalid-id", "too-long"],
)
def test_a_batch_refused_whole(queue: Queue, name: str, entries: Boto) -> None:
    seen = shown(queue.client.send_message_batch, QueueUrl=queue.url, Entries=entries)
    assert seen == of_sender(name, f"{SERVICE}.{name}")


def test_a_purge_in_progress(queue: Queue) -> None:
    queue.client.purge_queue(QueueUrl=queue.url)
    name, code, query_code, _, blame = shown(queue.client.purge_queue, QueueUrl=queue.url)
    assert (name, code, query_code, blame) == (
        "PurgeQueueInProgress", f"{SERVICE}.PurgeQueueInProgress", "PurgeQueueInProgress", "Sender"
    )  # fmt: skip


def test_a_missing_move_task_source(queue: Queue) -> None:
    name, code, _, _, blame = shown(queue.client.start_message_move_task, SourceArn=f"{queue.arn}-nowhere")
    assert (name, code, blame) == ("ResourceNotFoundException", "ResourceNotFoundException", "Sender")
