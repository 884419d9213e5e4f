"""Describe wanted queues, existing queues, and the differences that `queue_diff` finds between them.

Attributes have SQS's names and meanings (AWS: CreateQueue, SetQueueAttributes).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final, TypeAlias

VISIBILITY: Final = "VisibilityTimeout"
RETENTION: Final = "MessageRetentionPeriod"
WAIT: Final = "ReceiveMessageWaitTimeSeconds"
BY_CONTENT: Final = "ContentBasedDeduplication"
SSE: Final = "SqsManagedSseEnabled"
KEY: Final = "KmsMasterKeyId"
REDRIVE: Final = "RedrivePolicy"
ALLOW: Final = "RedriveAllowPolicy"

FORTNIGHT: Final = 14 * 86_400  #: seconds; the longest retention of SQS
LONGEST_POLL: Final = 20  #: seconds; the longest long poll of SQS
MOST_RECEIVES: Final = 1_000
MOST_ALLOWED: Final = 10  #: most queues that a RedriveAllowPolicy can name
OWN_VISIBILITY: Final = 900  #: seconds; visibility timeout of the service's own queues: three times a task's time limit
FIFO: Final = ".fifo"


class Precedence(Enum):
    """What happens if an existing queue has another value than wanted; the enum's value is the reason in words.

    EXACTLY changes the queue's value. AT_LEAST only raises the value. AT_FIRST keeps the value: the wanted value is for
    new queues only.
    """

    EXACTLY = "a person asked for it"
    AT_LEAST = "more is better"
    AT_FIRST = "an existing queue keeps its value"


@dataclass(frozen=True, slots=True)
class WantedNumber:
    """A wanted number, and what happens if the existing queue has another number (`precedence`)."""

    value: int
    precedence: Precedence = Precedence.AT_FIRST


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedQueue:
    """A queue as it should be. It is created, or compared with the existing queue of this name.

    Attributes:
        visibility: the visibility timeout in seconds.
        retention: for how many seconds the queue keeps a message.
        wait: the duration of a long poll in seconds.
        by_content: content-based deduplication, for FIFO queues.
        key: the KMS key that encrypts messages; empty: SQS's own keys (SSE-SQS).
        dlq: the name of the queue's DLQ; empty: no DLQ.
        receives: maxReceiveCount: after this many receives, SQS moves a message to the DLQ.
        sources: names of the queues whose DLQ this queue is.
        chains: whether this queue may have a DLQ although it is itself a DLQ, because a person named its DLQ.
    """

    name: str
    visibility: WantedNumber = WantedNumber(30)
    retention: WantedNumber = WantedNumber(345_600)
    wait: WantedNumber = WantedNumber(LONGEST_POLL, Precedence.AT_LEAST)
    by_content: bool = False
    key: str = ""
    dlq: str = ""
    receives: WantedNumber = WantedNumber(5)
    sources: tuple[str, ...] = ()
    chains: bool = True

    @property
    def fifo(self) -> bool:
        """Return whether the queue is a FIFO queue."""
        return self.name.endswith(FIFO)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExistingQueue:
    """The attributes of an existing queue.

    Attributes:
        visibility, retention, wait, by_content: as in `WantedQueue`.
        sse: whether SSE-SQS is on.
        key: the KMS key; empty: none.
        redrive_policy: the ARN of the queue's DLQ, and maxReceiveCount; None: no DLQ.
        permission: who may use the queue as DLQ (redrivePermission): allowAll (the default), denyAll or byQueue.
        allowed: ARNs of the queues that byQueue allows.
        sources: ARNs of the queues whose DLQ this queue is.
    """

    arn: str
    visibility: int = 30
    retention: int = 345_600
    wait: int = 0
    by_content: bool = False
    sse: bool = True
    key: str = ""
    redrive_policy: tuple[str, int] | None = None
    permission: str = "allowAll"
    allowed: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()

    def arn_beside(self, name: str) -> str:
        """Return the ARN of another queue with this name, in this queue's account and region."""
        return f"{self.arn.rpartition(':')[0]}:{name}"


@dataclass(frozen=True, slots=True)
class QueueMissing:
    """The queue does not exist. It is created with these attributes; its policies are set afterwards."""

    attributes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AttributeDiffers:
    """An attribute's value (`found`) will be changed to the wanted value. Values are SQS's texts; empty: not set."""

    attribute: str
    found: str
    wanted: str


@dataclass(frozen=True, slots=True)
class AttributeKept:
    """An attribute of an existing queue has another value than wanted, and keeps its value because of `why`."""

    attribute: str
    found: str
    wanted: str
    why: str


@dataclass(frozen=True, slots=True)
class AttributeContradicts:
    """An attribute contradicts the wanted value, and is not changed.

    `what`: the contradiction, in words. `cure`: what a person has to do.
    """

    attribute: str
    what: str
    cure: str


Difference: TypeAlias = QueueMissing | AttributeDiffers | AttributeKept | AttributeContradicts


def number_or_default(value: int | None, default: int) -> WantedNumber:
    """Return a queue's wanted number, such as its retention in seconds, from the number `value` that a person set.

    `value` None: no person set a number. Then a new queue gets `default`, and an existing queue keeps its number.
    """
    return WantedNumber(default) if value is None else WantedNumber(value, Precedence.EXACTLY)


def queue_family(source: WantedQueue, *, parking: str = "") -> tuple[WantedQueue, ...]:
    """Return the wanted queues around a source queue: its DLQ, its parking queue, and the source queue itself.

    `parking`: the name of the parking queue, which gets copies of parked messages; "": there is no parking queue.
    """
    longest = WantedNumber(FORTNIGHT, Precedence.AT_LEAST)
    lot = [WantedQueue(name=parking, key=source.key, retention=longest)] if parking else []
    return (WantedQueue(name=source.dlq, key=source.key, retention=longest, sources=(source.name,)), *lot, source)


def service_queues(name: str, *, key: str = "") -> tuple[WantedQueue, ...]:
    """Return the queue `name`, one of the service's own queues, and its DLQ. `key`: the KMS key; "": SQS's own keys.

    Existing queues keep their duration of a long poll (`wait`), because workers send their own duration with each
    receive.
    """
    wait, longest = WantedNumber(LONGEST_POLL), WantedNumber(FORTNIGHT)
    hidden = WantedNumber(OWN_VISIBILITY, Precedence.AT_LEAST)
    queue = WantedQueue(name=name, key=key, dlq=f"{name}-dlq", visibility=hidden, retention=longest, wait=wait)
    return tuple(replace(wanted, wait=wait) for wanted in queue_family(queue))


def with_source_deduplication(
    wanted: Sequence[WantedQueue], found: Mapping[str, ExistingQueue | None]
) -> tuple[WantedQueue, ...]:
    """Return the wanted queues, with content-based deduplication for each DLQ of a queue that has this setting.

    `found`: the existing queues by name; None: the queue does not exist.
    """
    by_content = {queue.name for queue in wanted if queue.by_content} | {
        name for name, queue in found.items() if queue is not None and queue.by_content
    }
    return tuple(
        replace(queue, by_content=True) if by_content.intersection(queue.sources) else queue for queue in wanted
    )
