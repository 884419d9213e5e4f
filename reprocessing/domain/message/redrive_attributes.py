"""What a letter carries on its way back, so that it is known wherever it turns up."""

from __future__ import annotations

import re
from dataclasses import dataclass
from uuid import UUID

from reprocessing.domain.message.envelope import Attribute, Attributes

#: SQS takes no more on one message.
ATTRIBUTES = 10
#: Attempts that earlier tools may have counted; beyond that the count is broken, not the letter.
EARLIER_ATTEMPTS = 1000

_EARLIER_COUNTERS = ("redrive_attempt", "sqs-dlq-replay-nb")
_MARK = re.compile(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}):([1-9][0-9]{0,8})")
_NAME = re.compile(r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*")
_NAME_LENGTH = 256
_COUNT = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkNames:
    """Under which attribute each mark travels; None switches one off.

    Attributes:
        redrive: the redrive id and the attempt number, in one; without it a return is known by its message id alone.
    """

    redrive: str | None = "RedriveId"
    idempotency_key: str | None = "IdempotencyKey"
    message_id: str | None = "OriginalMessageId"
    reprocessed_from: str | None = "ReprocessedFrom"


@dataclass(frozen=True, slots=True)
class Mark:
    """Which attempt of which letter a message is."""

    public_id: UUID
    attempt_no: int

    def __str__(self) -> str:
        return f"{self.public_id}:{self.attempt_no}"


def is_name(text: str) -> bool:
    """Whether SQS lets a message attribute have this name."""
    reserved = text.lower().startswith(("aws.", "amazon."))
    return len(text) <= _NAME_LENGTH and not reserved and bool(_NAME.fullmatch(text))


def marks(
    names: MarkNames, mark: Mark, *, idempotency_key: str, message_id: str, reprocessed_from: str
) -> dict[str, Attribute]:
    """The attributes to add, the most needed first.

    Args:
        names: under which they travel.
        mark: the attempt.
        idempotency_key: the same on every attempt of a letter.
        message_id: the one under which the letter died.
        reprocessed_from: the name of the dlq that the letter was taken from.
    """
    texts = [
        (names.redrive, str(mark)),
        (names.idempotency_key, idempotency_key),
        (names.message_id, message_id),
        (names.reprocessed_from, reprocessed_from),
    ]
    return {name: Attribute("String", text) for name, text in texts if name and text}


def addressed(
    attributes: Attributes, added: Attributes, names: MarkNames, *, space: int, room: int = ATTRIBUTES
) -> tuple[dict[str, Attribute], list[str]]:
    """The attributes a letter leaves with, and the names of those among them that are marks.

    What the letter had stays as it was: a mark whose name is taken is left out. Only a mark of an earlier redrive,
    one that `read_mark` recognises, gives way to the new one. A mark that finds no room is left out.

    Args:
        attributes: those that the letter died with.
        added: what `marks` made.
        names: the same that `marks` had.
        space: bytes that the attributes may take, all together: the queue's limit less the body.
        room: attributes that there may be.
    """
    leaving, put = dict(attributes), list[str]()
    if names.redrive and names.redrive in added and read_mark(attributes, names):
        del leaving[names.redrive]
    left = space - size(leaving)
    for name, attribute in added.items():
        weight = size({name: attribute})
        if name not in leaving and len(leaving) < room and weight <= left:
            leaving[name] = attribute
            left -= weight
            put.append(name)
    return leaving, put


def size(attributes: Attributes) -> int:
    """The bytes that SQS counts for attributes: names, types and values."""
    return sum(len(name.encode()) + len(one.type.encode()) + len(_raw(one.value)) for name, one in attributes.items())


def read_mark(attributes: Attributes, names: MarkNames) -> Mark | None:
    """Which attempt of ours a message is; None for everybody else's."""
    found = _MARK.fullmatch(_text(attributes, names.redrive))
    return Mark(UUID(found[1]), int(found[2])) if found else None


def earlier_attempts(attributes: Attributes) -> int:
    """How often earlier tools sent a letter back, by the counters they left on it; what is no count counts nothing."""
    texts = [_text(attributes, name) for name in _EARLIER_COUNTERS]
    return min(sum(int(text) for text in texts if _COUNT.fullmatch(text)), EARLIER_ATTEMPTS)


def _text(attributes: Attributes, name: str | None) -> str:
    attribute = attributes.get(name) if name else None
    return attribute.value if attribute and isinstance(attribute.value, str) else ""


def _raw(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else value.encode(errors="surrogatepass")
