"""A queue as the contract tests speak to it: a thin layer over boto3 that hides no answer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import pytest
from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from collections.abc import Callable

    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.type_defs import MessageTypeDef, SendMessageBatchResultTypeDef, SendMessageResultTypeDef

Boto: TypeAlias = Any
"""A parameter that goes to boto3 as it stands: tests send wrong ones on purpose, so no type can hold them."""

MIB = 1024 * 1024


class Counts(NamedTuple):
    visible: int
    in_flight: int
    delayed: int


class Queue:
    """One queue at one endpoint. Every keyword goes to boto3 as it stands."""

    def __init__(self, client: SQSClient, url: str) -> None:
        self.client = client
        self.url = url
        self.name = url.rsplit("/", 1)[1]

    @property
    def arn(self) -> str:
        return self.attributes("QueueArn")["QueueArn"]

    def send(self, body: str = "m", **rest: Boto) -> SendMessageResultTypeDef:
        return self.client.send_message(QueueUrl=self.url, MessageBody=body, **rest)

    def send_group(self, group: str, *bodies: str) -> list[SendMessageResultTypeDef]:
        """Sends one after another into one group; each body is its own deduplication id."""
        return [self.send(body, MessageGroupId=group, MessageDeduplicationId=body) for body in bodies]

    def send_batch(self, *entries: dict[str, Boto]) -> SendMessageBatchResultTypeDef:
        return self.client.send_message_batch(QueueUrl=self.url, Entries=list(entries))  # type: ignore[arg-type]  # tests also send wrong entries

    def receive(self, most: int = 10, **rest: Boto) -> list[MessageTypeDef]:
        """Up to `most` messages with all their attributes; by default a short poll."""
        rest = {"MessageSystemAttributeNames": ["All"], "MessageAttributeNames": ["All"], **rest}
        return self.client.receive_message(QueueUrl=self.url, MaxNumberOfMessages=most, **rest).get("Messages", [])

    def bodies(self, most: int = 10, **rest: Boto) -> list[str]:
        return [message["Body"] for message in self.receive(most, **rest)]

    def receive_one(self, **rest: Boto) -> MessageTypeDef:
        messages = self.receive(**rest)
        assert len(messages) == 1
        return messages[0]

    def delete(self, message: MessageTypeDef) -> None:
        self.client.delete_message(QueueUrl=self.url, ReceiptHandle=message["ReceiptHandle"])

    def hide(self, message: MessageTypeDef, seconds: int) -> None:
        self.client.change_message_visibility(
            QueueUrl=self.url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=seconds
        )

    def attributes(self, *names: str) -> dict[str, str]:
        answer = self.client.get_queue_attributes(QueueUrl=self.url, AttributeNames=names)  # type: ignore[arg-type]  # tests also ask for unknown names
        return {str(name): value for name, value in answer.get("Attributes", {}).items()}

    def set(self, **attributes: str) -> None:
        self.client.set_queue_attributes(QueueUrl=self.url, Attributes=attributes)  # type: ignore[arg-type]  # tests also set unknown names

    def counts(self) -> Counts:
        names = [f"ApproximateNumberOfMessages{suffix}" for suffix in ("", "NotVisible", "Delayed")]
        attributes = self.attributes(*names)
        return Counts(*(int(attributes[name]) for name in names))


def system(message: MessageTypeDef) -> dict[str, str]:
    return {str(name): value for name, value in message.get("Attributes", {}).items()}


def redrive_policy(dlq: Queue, max_receive_count: object = 1) -> str:
    return json.dumps({"deadLetterTargetArn": dlq.arn, "maxReceiveCount": max_receive_count})


def bury(source: Queue) -> None:
    """Fails every message of `source` by receiving it until the queue holds nothing any more.

    SQS decides on a receive whether a message moves, so this receives again and again, a bounded number of times.
    """
    for _ in range(20):
        source.receive(VisibilityTimeout=0)
        if source.counts() == Counts(0, 0, 0):
            return
    pytest.fail(f"{source.counts()} still lie in the source queue after 20 receives")


def refused(call: Callable[..., object], *arguments: Boto, **rest: Boto) -> str:
    """The code under which the endpoint refuses the call; fails when it is accepted, or when the endpoint breaks."""
    with pytest.raises(ClientError) as caught:
        call(*arguments, **rest)
    response = caught.value.response
    assert response["ResponseMetadata"]["HTTPStatusCode"] < 500
    return response["Error"]["Code"]
