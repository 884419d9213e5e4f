"""Whether calls are allowed, asked so that SQS can do nothing: with empty batches, and for no messages at all.

Whoever lacks the right is refused for that; everybody else is told that the request is not valid.
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

#: By the right that each takes. AWS: the batches take the rights of their single forms.
PROBES: Final[Mapping[str, Call]] = {
    "sqs:ReceiveMessage": lambda sqs, url: sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=0),
    "sqs:DeleteMessage": lambda sqs, url: sqs.delete_message_batch(QueueUrl=url, Entries=[]),
    "sqs:ChangeMessageVisibility": lambda sqs, url: sqs.change_message_visibility_batch(QueueUrl=url, Entries=[]),
    "sqs:SendMessage": lambda sqs, url: sqs.send_message_batch(QueueUrl=url, Entries=[]),
}
TAKING: Final = ("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility")
SENDING: Final = ("sqs:SendMessage",)


def denied(address: QueueAddress, rights: Iterable[str]) -> list[str]:
    """Those of the rights that SQS says are lacking on a queue. One it says nothing of may be there or not.

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
    """SQS's clock, to the second, as its answer carries it; None where it carries none.

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
