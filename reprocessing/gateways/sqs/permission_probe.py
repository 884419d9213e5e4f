"""Check permissions on a queue with invalid requests that have no effect: empty batches, and receives of 0 messages.

Without the permission, SQS answers AccessDenied. With the permission, SQS answers that the request is invalid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from reprocessing.gateways.aws.clients import client
from reprocessing.gateways.aws.errors import code_of, out_of_reach, reaching
from reprocessing.gateways.aws.queue_address import QueueAddress

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

Call = Callable[["SQSClient", str], object]

#: Invalid requests, by the permission that they need. SQS checks a batch action by the single action's permission.
PROBES: Final[Mapping[str, Call]] = {
    "sqs:ReceiveMessage": lambda sqs, url: sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=0),
    "sqs:DeleteMessage": lambda sqs, url: sqs.delete_message_batch(QueueUrl=url, Entries=[]),
    "sqs:ChangeMessageVisibility": lambda sqs, url: sqs.change_message_visibility_batch(QueueUrl=url, Entries=[]),
    "sqs:SendMessage": lambda sqs, url: sqs.send_message_batch(QueueUrl=url, Entries=[]),
}
#: Permissions that receiving from a queue needs, and permissions that sending to a queue needs.
TAKING: Final = ("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility")
SENDING: Final = ("sqs:SendMessage",)


def denied(address: QueueAddress, rights: Iterable[str]) -> list[str]:
    """Return which permissions of `rights` SQS denies on a queue. Other errors do not count as denied.

    Raises:
        QueueUnreachable: SQS did not answer.
    """
    lacking = []
    for right in rights:
        try:
            PROBES[right](client(address.region, role=address.role), address.url)
        except ClientError as error:
            if "AccessDenied" in code_of(error):
                lacking.append(right)
        except BotoCoreError as error:
            raise out_of_reach(address, right.partition(":")[2], error) from error
    return lacking


def clock(address: QueueAddress) -> datetime | None:
    """Return the time of SQS's clock, from the Date header of an answer; None if the answer has no such header.

    Raises:
        QueueUnreachable: SQS refused or did not answer.
    """
    with reaching(address, "GetQueueAttributes"):
        answer: Any = client(address.region, role=address.role).get_queue_attributes(
            QueueUrl=address.url, AttributeNames=["QueueArn"]
        )
    said = answer["ResponseMetadata"].get("HTTPHeaders", {}).get("date")
    try:
        return parsedate_to_datetime(said) if said else None
    except ValueError:
        return None
