"""Find queues by name, create queues, and change their attributes. No queue is ever deleted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from botocore.exceptions import BotoCoreError, ClientError

from reprocessing.domain.aws.queue_spec import (
    ALLOW,
    BY_CONTENT,
    KEY,
    REDRIVE,
    RETENTION,
    SSE,
    VISIBILITY,
    WAIT,
    ExistingQueue,
)
from reprocessing.domain.errors import QueueUnreachable
from reprocessing.gateways.aws.clients import client
from reprocessing.gateways.aws.errors import code_of, error_in_words, out_of_reach
from reprocessing.gateways.aws.queue_address import QueueAddress
from reprocessing.gateways.sqs.queue_attributes import sources_of

if TYPE_CHECKING:
    from mypy_boto3_sqs.literals import QueueAttributeNameType

_GONE: Final = frozenset({"NonExistentQueue", "QueueDoesNotExist"})
_SLOW: Final = "A change takes up to 60 s in SQS."
#: Why a queue could not be created, by SQS's error code.
_NOT_MADE: Final = {
    "QueueDeletedRecently": "a queue of this name was deleted less than 60 s ago. Run this again in a minute",
    "QueueAlreadyExists": "somebody created it meanwhile, with other settings. Run this again: it shows what differs",
    "QueueNameExists": "somebody created it meanwhile, with other settings. Run this again: it shows what differs",
}


@dataclass(frozen=True, slots=True)
class QueueLocation:
    """The region, role and account in which queues are found and created.

    Attributes:
        role: the ARN of the role to assume. If empty, the process's own role is used.
        account: the account number, if it is known. Queues of other accounts are then not found. Empty: not known.
    """

    region: str
    role: str = ""
    account: str = ""


def find_queue(place: QueueLocation, name: str) -> tuple[QueueAddress, ExistingQueue] | None:
    """Return the address, settings and source queues of the queue with this name; None: the queue does not exist.

    Raises:
        QueueUnreachable: SQS refused or did not answer.
    """
    asked = {"QueueName": name, **({"QueueOwnerAWSAccountId": place.account} if place.account else {})}
    action = "GetQueueUrl"
    try:
        url = client(place.region, role=place.role).get_queue_url(**cast("Any", asked))["QueueUrl"]
        address, action = QueueAddress(url, place.region, place.role), "GetQueueAttributes"
        answer = client(place.region, role=place.role).get_queue_attributes(QueueUrl=url, AttributeNames=["All"])
        return address, _found(cast("Mapping[str, str]", answer["Attributes"]), tuple(_arns_of_sources(address)))
    except (BotoCoreError, ClientError) as error:
        if _code(error) in _GONE:
            return None
        raise out_of_reach(name, action, error) from error


def make_queue(place: QueueLocation, name: str, attributes: Mapping[str, str]) -> None:
    """Create a queue. A queue of this name with the same attributes is left as it is.

    Raises:
        QueueUnreachable: SQS refused or did not answer, or the queue was created in another account than `place` names.
    """
    try:
        made = client(place.region, role=place.role).create_queue(
            QueueName=name, Attributes=cast("Mapping[QueueAttributeNameType, str]", attributes)
        )
    except (BotoCoreError, ClientError) as error:
        if why := _NOT_MADE.get(_code(error)):
            raise QueueUnreachable(f"{name}: it was not created: {why}.") from error
        raise out_of_reach(name, "CreateQueue", error) from error
    account = QueueAddress(made["QueueUrl"], place.region).account
    if place.account and account != place.account:
        raise QueueUnreachable(
            f"{name}: it was created as {made['QueueUrl']}, but its configured URL names account {place.account}. Use "
            "credentials of that account, or correct the URL. Delete the queue that was created by mistake."
        )


def change_attributes(address: QueueAddress, attributes: Mapping[str, str]) -> None:
    """Change attributes of a queue. SQS changes all of them or none. The request is not retried.

    Raises:
        QueueUnreachable: SQS refused or did not answer.
    """
    try:
        client(address.region, role=address.role).set_queue_attributes(
            QueueUrl=address.url, Attributes=cast("Mapping[QueueAttributeNameType, str]", attributes)
        )
    except (BotoCoreError, ClientError) as error:
        if _code(error) in {*_GONE, "InvalidParameterValue"}:
            names = " and ".join(attributes)
            why = f"{error_in_words(error)}. {_SLOW} Run this again in a minute: it does what is left."
            raise QueueUnreachable(f"{address.name}: {names} was not changed: {why}") from error
        raise out_of_reach(address, "SetQueueAttributes", error) from error


def _code(error: Exception) -> str:
    return code_of(error) if isinstance(error, ClientError) else ""


def _arns_of_sources(address: QueueAddress) -> list[str]:
    """Return the ARNs of a DLQ's source queues, computed from their URLs and the DLQ's account and region."""
    return [QueueAddress(url, address.region).arn for url in sources_of(address)]


def _found(said: Mapping[str, str], sources: tuple[str, ...]) -> ExistingQueue:
    redrive: dict[str, Any] = json.loads(said.get(REDRIVE) or "{}")
    allow: dict[str, Any] = json.loads(said.get(ALLOW) or "{}")
    return ExistingQueue(
        arn=said["QueueArn"],
        visibility=int(said[VISIBILITY]),
        retention=int(said[RETENTION]),
        wait=int(said.get(WAIT, 0)),
        by_content=said.get(BY_CONTENT, "").lower() == "true",
        sse=said.get(SSE, "").lower() == "true",
        key=said.get(KEY, ""),
        redrive_policy=(redrive["deadLetterTargetArn"], int(redrive["maxReceiveCount"])) if redrive else None,
        permission=allow.get("redrivePermission", "allowAll"),
        allowed=tuple(allow.get("sourceQueueArns", ())),
        sources=sources,
    )
