"""Errors as boto3 shows them: the modelled exception, both codes, and the status where AWS's pages agree on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from botocore.exceptions import ClientError

from tests.contract.queues import MIB, Boto, Queue

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.contract.conftest import MakeQueue

SERVICE = "AWS.SimpleQueueService"


def shown(call: Callable[..., object], **parameters: Boto) -> tuple[str, str, str | None, int, str]:
    """Exception name, Error.Code, Error.QueryErrorCode, HTTP status and who is to blame."""
    with pytest.raises(ClientError) as caught:
        call(**parameters)
    response: Boto = caught.value.response
    error = response["Error"]
    return (
        type(caught.value).__name__,
        error["Code"],
        error.get("QueryErrorCode"),
        response["ResponseMetadata"]["HTTPStatusCode"],
        error.get("Type"),
    )


def test_a_missing_queue(queue: Queue) -> None:
    assert shown(queue.client.send_message, QueueUrl=f"{queue.url}-nowhere", MessageBody="m") == (
        "QueueDoesNotExist",
        f"{SERVICE}.NonExistentQueue",
        "QueueDoesNotExist",
        400,
        "Sender",
    )


def test_an_existing_name(make_queue: MakeQueue) -> None:
    queue = make_queue(VisibilityTimeout="77")
    create = queue.client.create_queue
    assert shown(create, QueueName=queue.name, Attributes={"VisibilityTimeout": "78"}) == (
        "QueueNameExists",
        "QueueAlreadyExists",
        "QueueNameExists",
        400,
        "Sender",
    )


def test_a_name_deleted_a_moment_ago(queue: Queue) -> None:
    queue.client.delete_queue(QueueUrl=queue.url)
    assert shown(queue.client.create_queue, QueueName=queue.name) == (
        "QueueDeletedRecently",
        f"{SERVICE}.QueueDeletedRecently",
        "QueueDeletedRecently",
        400,
        "Sender",
    )


def test_a_malformed_handle(queue: Queue) -> None:
    name, code, query_code, _, blame = shown(queue.client.delete_message, QueueUrl=queue.url, ReceiptHandle="garbage")
    assert (name, code, query_code, blame) == (
        "ReceiptHandleIsInvalid",
        "ReceiptHandleIsInvalid",
        "ReceiptHandleIsInvalid",
        "Sender",
    )


def test_a_message_that_is_not_in_flight(queue: Queue) -> None:
    queue.send("m")
    handle = queue.receive_one(VisibilityTimeout=0)["ReceiptHandle"]
    change = queue.client.change_message_visibility
    assert shown(change, QueueUrl=queue.url, ReceiptHandle=handle, VisibilityTimeout=60) == (
        "MessageNotInflight",
        f"{SERVICE}.MessageNotInflight",
        "MessageNotInflight",
        400,
        "Sender",
    )


def test_a_forbidden_character(queue: Queue) -> None:
    assert shown(queue.client.send_message, QueueUrl=queue.url, MessageBody="\x01") == (
        "InvalidMessageContents",
        "InvalidMessageContents",
        "InvalidMessageContents",
        400,
        "Sender",
    )


def test_an_unknown_attribute(queue: Queue) -> None:
    ask = queue.client.get_queue_attributes
    assert shown(ask, QueueUrl=queue.url, AttributeNames=["Colour"]) == (
        "InvalidAttributeName",
        "InvalidAttributeName",
        "InvalidAttributeName",
        400,
        "Sender",
    )


def test_an_attribute_value_out_of_range(queue: Queue) -> None:
    change = queue.client.set_queue_attributes
    assert shown(change, QueueUrl=queue.url, Attributes={"DelaySeconds": "901"}) == (
        "InvalidAttributeValue",
        "InvalidAttributeValue",
        "InvalidAttributeValue",
        400,
        "Sender",
    )


def test_a_parameter_out_of_range(queue: Queue) -> None:
    assert shown(queue.client.receive_message, QueueUrl=queue.url, MaxNumberOfMessages=11) == (
        "ClientError",
        "InvalidParameterValue",
        "InvalidParameterValueException",
        400,
        "Sender",
    )


def test_a_missing_parameter(fifo: Queue) -> None:
    send = fifo.client.send_message
    assert shown(send, QueueUrl=fifo.url, MessageBody="m", MessageDeduplicationId="d") == (
        "ClientError",
        "MissingParameter",
        "MissingRequiredParameterException",
        400,
        "Sender",
    )


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
    assert shown(queue.client.send_message_batch, QueueUrl=queue.url, Entries=entries) == (
        name,
        f"{SERVICE}.{name}",
        name,
        400,
        "Sender",
    )


def test_a_purge_in_progress(queue: Queue) -> None:
    queue.client.purge_queue(QueueUrl=queue.url)
    name, code, query_code, _, blame = shown(queue.client.purge_queue, QueueUrl=queue.url)
    assert (name, code, query_code, blame) == (
        "PurgeQueueInProgress",
        f"{SERVICE}.PurgeQueueInProgress",
        "PurgeQueueInProgress",
        "Sender",
    )


def test_a_missing_move_task_source(queue: Queue) -> None:
    name, code, _, _, blame = shown(queue.client.start_message_move_task, SourceArn=f"{queue.arn}-nowhere")
    assert (name, code, blame) == ("ResourceNotFoundException", "ResourceNotFoundException", "Sender")
