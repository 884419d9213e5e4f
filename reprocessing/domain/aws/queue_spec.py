"""A queue as it is wanted, as it is found, and what may lie between the two (see `deviation`).

Attributes are named as SQS names them; AWS: CreateQueue and SetQueueAttributes have their meanings and limits.
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

FORTNIGHT: Final = 14 * 86_400  #: seconds; SQS keeps no message for longer
LONGEST_POLL: Final = 20  #: seconds
MOST_RECEIVES: Final = 1_000
MOST_ALLOWED: Final = 10  #: queues that a RedriveAllowPolicy names
OWN_VISIBILITY: Final = 900  #: seconds: three times what a task of the service may take
FIFO: Final = ".fifo"


class Hold(Enum):
    """How a value that is wanted looks upon another one that is there."""

    EXACTLY = "somebody asked for it"
    AT_LEAST = "more is better"
    AT_FIRST = "a queue that is there keeps its own"


@dataclass(frozen=True, slots=True)
class Want:
    """A number that is wanted."""

    value: int
    hold: Hold = Hold.AT_FIRST


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A queue as it is wanted. A FIFO queue is one by its name.

    Attributes:
        visibility, retention, wait: seconds.
        by_content: FIFO: a send without deduplication id takes the body's hash.
        key: the KMS key that encrypts it; empty: SQS's own (SSE-SQS).
        dlq: the queue's name that its messages die into after `receives` receives; empty: they do not.
        origins: names of the queues whose messages die into it, and which must be allowed to.
        chains: it may be a dlq itself, and have a dlq nevertheless: somebody named that.
    """

    name: str
    visibility: Want = Want(30)
    retention: Want = Want(345_600)
    wait: Want = Want(LONGEST_POLL, Hold.AT_LEAST)
    by_content: bool = False
    key: str = ""
    dlq: str = ""
    receives: Want = Want(5)
    origins: tuple[str, ...] = ()
    chains: bool = True

    @property
    def fifo(self) -> bool:
        """Whether it keeps the order of groups."""
        return self.name.endswith(FIFO)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A queue as it is.

    Attributes:
        visibility, retention, wait: seconds.
        sse: SQS's own encryption is on.
        key: the KMS key that encrypts it; empty: none.
        dies_into: the ARN of its dlq, and the receives before that; None: messages stay.
        permission: of its RedriveAllowPolicy: allowAll (also where there is none), denyAll or byQueue.
        allowed: ARNs of the queues that may die into it, under byQueue.
        origins: ARNs of the queues that do.
    """

    arn: str
    visibility: int = 30
    retention: int = 345_600
    wait: int = 0
    by_content: bool = False
    sse: bool = True
    key: str = ""
    dies_into: tuple[str, int] | None = None
    permission: str = "allowAll"
    allowed: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()

    def sibling(self, name: str) -> str:
        """The ARN of the queue of this name beside it: a queue dies into one of its own account and region."""
        return f"{self.arn.rpartition(':')[0]}:{name}"


@dataclass(frozen=True, slots=True)
class Missing:
    """There is no such queue; it is made with these attributes, and gets its policies afterwards."""

    attributes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Differs:
    """An attribute has another value, and is to be changed; values as SQS takes them, empty: it has none."""

    attribute: str
    found: str
    wanted: str


@dataclass(frozen=True, slots=True)
class Kept:
    """An attribute has another value, and keeps it."""

    attribute: str
    found: str
    wanted: str
    why: str


@dataclass(frozen=True, slots=True)
class Contradicts:
    """An attribute has a value that means something else, so that nothing is done until a person has decided."""

    attribute: str
    what: str
    cure: str


Difference: TypeAlias = Missing | Differs | Kept | Contradicts


def said(value: int | None, default: int) -> Want:
    """The number that somebody asked for; None: the default, of a queue that is made."""
    return Want(default) if value is None else Want(value, Hold.EXACTLY)


def family(origin: Wanted, *, parking: str = "") -> tuple[Wanted, ...]:
    """The origin, its dlq, and the parking queue of this name, as they are wanted; empty: none is wanted."""
    longest = Want(FORTNIGHT, Hold.AT_LEAST)
    lot = [Wanted(name=parking, key=origin.key, retention=longest)] if parking else []
    return (Wanted(name=origin.dlq, key=origin.key, retention=longest, origins=(origin.name,)), *lot, origin)


def own(name: str, *, key: str = "") -> tuple[Wanted, ...]:
    """One of the service's own queues and its dlq, as they are wanted.

    Their long poll is what they are made with: workers name theirs with each receive, and nobody else listens.
    """
    wait, longest = Want(LONGEST_POLL), Want(FORTNIGHT)
    hidden = Want(OWN_VISIBILITY, Hold.AT_LEAST)
    queue = Wanted(name=name, key=key, dlq=f"{name}-dlq", visibility=hidden, retention=longest, wait=wait)
    return tuple(replace(one, wait=wait) for one in family(queue))


def fitted(wanted: Sequence[Wanted], found: Mapping[str, Found | None]) -> tuple[Wanted, ...]:
    """The same, each dlq with its origin's deduplication by content: `found` is by name."""
    by_content = {one.name for one in wanted if one.by_content} | {
        name for name, one in found.items() if one is not None and one.by_content
    }
    return tuple(replace(one, by_content=True) if by_content.intersection(one.origins) else one for one in wanted)
