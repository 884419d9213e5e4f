"""Read a queue's settings, depth and source queues, without receiving messages."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from botocore.exceptions import ClientError

from reprocessing.domain.errors import QueueUnreachable
from reprocessing.domain.message.arn import resource_name
from reprocessing.gateways.aws.clients import client
from reprocessing.gateways.aws.errors import code_of, reaching
from reprocessing.gateways.aws.queue_address import QueueAddress, arn_of_queue

_PAGE = 1_000
_GONE = frozenset({"NonExistentQueue", "QueueDoesNotExist"})


@dataclass(frozen=True, slots=True)
class RedrivePolicy:
    """A queue's redrive policy.

    Attributes:
        target_arn: the ARN of the queue's DLQ.
        max_receives: SQS moves a message to the DLQ if the message is received more often than this.
    """

    target_arn: str
    max_receives: int


@dataclass(frozen=True, slots=True)
class RedriveAllowPolicy:
    """A DLQ's redrive allow policy, which says which queues may use it as their DLQ.

    Attributes:
        permission: allowAll, denyAll or byQueue.
        source_arns: the ARNs of the allowed queues, if `permission` is byQueue.
    """

    permission: str
    source_arns: tuple[str, ...] = ()

    def allows(self, arn: str) -> bool:
        """Return whether the policy allows the queue with this ARN to use the DLQ."""
        return self.permission == "allowAll" or (self.permission == "byQueue" and arn in self.source_arns)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueFacts:
    """A queue's settings.

    Attributes:
        visibility: default visibility timeout.
        retention: how long a message is kept. In a standard DLQ, this time begins when the message is first sent.
        delay: how long a new message is hidden.
        redrive: the redrive policy; None: the queue has no dead-letter queue.
        redrive_allow: which queues may use this queue as their dead-letter queue.
        largest: most bytes of a message, with its attributes.
        kms_key: the KMS key that encrypts the messages; None if none is set.
        content_based_deduplication: for FIFO queues, whether the body's hash replaces a missing deduplication id.
        deduplication_scope: for FIFO queues, queue or messageGroup; else None.
        throughput_limit: for FIFO queues, perQueue or perMessageGroupId; else None.
    """

    arn: str
    fifo: bool
    visibility: timedelta
    retention: timedelta
    delay: timedelta
    redrive: RedrivePolicy | None
    redrive_allow: RedriveAllowPolicy
    largest: int
    kms_key: str | None
    content_based_deduplication: bool
    deduplication_scope: str | None
    throughput_limit: str | None


@dataclass(frozen=True, slots=True)
class Depth:
    """SQS's counts of messages in a queue, which are approximate, and up to a minute old."""

    visible: int
    in_flight: int
    delayed: int

    @property
    def total(self) -> int:
        """Return the number of visible, in-flight and delayed messages."""
        return self.visible + self.in_flight + self.delayed


def describe(address: QueueAddress) -> QueueFacts:
    """Return the settings of a queue.

    Raises:
        QueueUnreachable: SQS refused or did not answer.
    """
    return _facts(_all_attributes(address))


def describe_with_depth(address: QueueAddress) -> tuple[QueueFacts, Depth]:
    """Return the settings of a queue, and its counts of messages, with one request.

    Raises:
        QueueUnreachable: SQS refused or did not answer.
    """
    said = _all_attributes(address)
    return _facts(said), _depth(said)


def _all_attributes(address: QueueAddress) -> Mapping[str, str]:
    with reaching(address, "GetQueueAttributes"):
        answer = client(address.region, role=address.role).get_queue_attributes(
            QueueUrl=address.url, AttributeNames=["All"]
        )
    return {str(name): value for name, value in answer["Attributes"].items()}


def _facts(said: Mapping[str, str]) -> QueueFacts:
    return QueueFacts(
        arn=said["QueueArn"],
        fifo=_is_true(said, "FifoQueue"),
        visibility=_seconds(said, "VisibilityTimeout"),
        retention=_seconds(said, "MessageRetentionPeriod"),
        delay=_seconds(said, "DelaySeconds"),
        redrive=_redrive(said.get("RedrivePolicy")),
        redrive_allow=_redrive_allow(said.get("RedriveAllowPolicy")),
        largest=int(said["MaximumMessageSize"]),
        kms_key=said.get("KmsMasterKeyId") or None,
        content_based_deduplication=_is_true(said, "ContentBasedDeduplication"),
        deduplication_scope=said.get("DeduplicationScope"),
        throughput_limit=said.get("FifoThroughputLimit"),
    )


def depth(address: QueueAddress) -> Depth:
    """Return SQS's counts of messages in a queue. They are up to a minute old, so 0 does not prove that it is empty.

    Raises:
        QueueUnreachable: SQS refused or did not answer.
    """
    with reaching(address, "GetQueueAttributes"):
        answer = client(address.region, role=address.role).get_queue_attributes(
            QueueUrl=address.url,
            AttributeNames=[
                "ApproximateNumberOfMessages",
                "ApproximateNumberOfMessagesNotVisible",
                "ApproximateNumberOfMessagesDelayed",
            ],
        )
    return _depth({str(name): value for name, value in answer["Attributes"].items()})


def _depth(said: Mapping[str, str]) -> Depth:
    return Depth(
        int(said["ApproximateNumberOfMessages"]),
        int(said["ApproximateNumberOfMessagesNotVisible"]),
        int(said["ApproximateNumberOfMessagesDelayed"]),
    )


def sources_of(address: QueueAddress) -> list[str]:
    """Return the URLs of all source queues, which are the queues whose redrive policy names this DLQ.

    Raises:
        QueueUnreachable: SQS refused or did not answer.
    """
    with reaching(address, "ListDeadLetterSourceQueues"):
        pages = client(address.region, role=address.role).get_paginator("list_dead_letter_source_queues")
        # Without a page size, SQS returns only the first page, and no token for the next.
        found = pages.paginate(QueueUrl=address.url, PaginationConfig={"PageSize": _PAGE})
        return [url for page in found for url in page["queueUrls"]]


def locate(arn: str, role: str = "") -> QueueAddress:
    """Return the address of the queue with this ARN.

    Calls to the queue will assume `role`. If empty, the process's own role is used.

    Raises:
        QueueUnreachable: `arn` is not a queue's ARN, or SQS refused or did not answer.
    """
    queue = arn_of_queue(arn)
    with reaching(arn, "GetQueueUrl"):
        answer = client(queue.region, role=role).get_queue_url(
            QueueName=resource_name(arn), QueueOwnerAWSAccountId=queue.account
        )
    return QueueAddress(answer["QueueUrl"], queue.region, role)


def is_missing(arn: str, role: str = "") -> bool:
    """Return whether the queue with this ARN does not exist, as SQS says; False if SQS refuses or does not answer."""
    try:
        locate(arn, role)
    except QueueUnreachable as error:
        return is_gone(error)
    return False


def is_gone(error: QueueUnreachable) -> bool:
    """Return whether an error says that the queue does not exist. Other refusals and timeouts do not say this."""
    return isinstance(error.__cause__, ClientError) and code_of(error.__cause__) in _GONE


def _is_true(said: Mapping[str, str], name: str) -> bool:
    return said.get(name, "").lower() == "true"


def _seconds(said: Mapping[str, str], name: str) -> timedelta:
    return timedelta(seconds=int(said[name]))


def _redrive(policy: str | None) -> RedrivePolicy | None:
    if not policy:
        return None
    said: dict[str, Any] = json.loads(policy)
    return RedrivePolicy(said["deadLetterTargetArn"], int(said["maxReceiveCount"]))


def _redrive_allow(policy: str | None) -> RedriveAllowPolicy:
    if not policy:
        return RedriveAllowPolicy("allowAll")  # SQS's default
    said: dict[str, Any] = json.loads(policy)
    return RedriveAllowPolicy(said.get("redrivePermission", "allowAll"), tuple(said.get("sourceQueueArns", ())))
