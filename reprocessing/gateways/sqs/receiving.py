"""Receive messages from SQS, with the exact bytes of bodies and attributes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reprocessing.domain.message.envelope import Attribute, ReceivedMessage
from reprocessing.gateways.aws.clients import client
from reprocessing.gateways.aws.errors import reaching
from reprocessing.gateways.aws.queue_address import QueueAddress

if TYPE_CHECKING:
    from mypy_boto3_sqs.type_defs import MessageAttributeValueOutputTypeDef, MessageTypeDef


def receive(
    address: QueueAddress, *, wait: int, visibility: int, maximum: int = 10, attempt_id: str | None = None
) -> list[ReceivedMessage]:
    """Return up to `maximum` messages, with all message attributes and system attributes.

    Args:
        address: the queue.
        wait: seconds of the long poll, 0 to 20.
        visibility: visibility timeout in seconds, 0 to 43,200.
        maximum: most messages to receive, 1 to 10.
        attempt_id: the ReceiveRequestAttemptId, for FIFO queues. If an answer is lost, a call with the same id returns
            the same messages for five minutes.

    Raises:
        QueueUnreachable: SQS refused or did not answer. SQS may have executed the request, and hidden messages. So an
            empty receive in the next `visibility` seconds does not prove that the queue is empty.
    """
    rest: dict[str, Any] = {}
    if attempt_id is not None and address.fifo:
        rest["ReceiveRequestAttemptId"] = attempt_id
    with reaching(address, "ReceiveMessage"):
        answer = client(address.region, role=address.role, wait=wait).receive_message(
            QueueUrl=address.url,
            WaitTimeSeconds=wait,
            VisibilityTimeout=visibility,
            MaxNumberOfMessages=maximum,
            MessageSystemAttributeNames=["All"],
            MessageAttributeNames=["All"],
            **rest,
        )
    return [_arrival(message) for message in answer.get("Messages", [])]


def _arrival(message: MessageTypeDef) -> ReceivedMessage:
    return ReceivedMessage(
        message_id=message["MessageId"],
        handle=message["ReceiptHandle"],
        body=message.get("Body", "").encode("utf-8", "surrogatepass"),
        attributes={name: _attribute(value) for name, value in message.get("MessageAttributes", {}).items()},
        system={str(name): value for name, value in message.get("Attributes", {}).items()},
    )


def _attribute(value: MessageAttributeValueOutputTypeDef) -> Attribute:
    if "BinaryValue" in value:
        return Attribute(value["DataType"], value["BinaryValue"])
    return Attribute(value["DataType"], value.get("StringValue", ""))
