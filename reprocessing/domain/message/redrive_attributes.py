"""Build and read "marks": attributes that the service adds to messages, and by which it recognises a message again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from reprocessing.domain.message.envelope import Attribute, Attributes
from reprocessing.domain.message.trace_context import TRACEPARENT, TRACESTATE

#: SQS's limit of attributes for one message.
MOST_ATTRIBUTES = 10
#: Max attempts of other redrive tools that are counted, because larger numbers are not plausible.
EARLIER_ATTEMPTS = 1000

#: Attributes in which other redrive tools count attempts.
EARLIER_COUNTERS = ("redrive_attempt", "sqs-dlq-replay-nb")
_MARK = re.compile(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}):([1-9][0-9]{0,8})")
_NAME = re.compile(r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*")
_NAME_LENGTH = 256
_COUNT = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkNames:
    """The names of the attributes that the service adds; None: this attribute is not added.

    If `redrive` is None, a message that comes back is recognised only by its message id.
    """

    redrive: str | None = "RedriveId"
    idempotency_key: str | None = "IdempotencyKey"
    message_id: str | None = "OriginalMessageId"
    reprocessed_from: str | None = "ReprocessedFrom"


@dataclass(frozen=True, slots=True)
class Mark:
    """The content of the attribute RedriveId: the redrive id of the letter, and the number of the attempt."""

    public_id: UUID
    attempt_no: int

    def __str__(self) -> str:
        return f"{self.public_id}:{self.attempt_no}"


def is_name(text: str) -> bool:
    """Return whether SQS accepts this name of a message attribute."""
    reserved = text.lower().startswith(("aws.", "amazon."))
    return len(text) <= _NAME_LENGTH and not reserved and bool(_NAME.fullmatch(text))


def marks(
    names: MarkNames, mark: Mark, *, idempotency_key: str, message_id: str, reprocessed_from: str
) -> dict[str, Attribute]:
    """Return the attributes to add to a redriven message, the most important first, because not all may fit.

    `message_id`: the message's id in the DLQ. `reprocessed_from`: the DLQ's name.
    """
    texts = [
        (names.redrive, str(mark)),
        (names.idempotency_key, idempotency_key),
        (names.message_id, message_id),
        (names.reprocessed_from, reprocessed_from),
    ]
    return {name: Attribute("String", text) for name, text in texts if name and text}


def attributes_to_send(
    attributes: Attributes, added: Attributes, names: MarkNames, *, space: int, room: int = MOST_ATTRIBUTES
) -> tuple[dict[str, Attribute], list[str]]:
    """Return the attributes to send with a letter, and the names of the marks (`added`) that are among them.

    A mark is left out if it does not fit, or if the letter already has an attribute with its name. An exception is the
    RedriveId of an earlier redrive, which is replaced.

    `space`: max bytes of all attributes (the queue's size limit minus the body's size). `room`: max number of
    attributes.
    """
    leaving, put = dict(attributes), list[str]()
    if names.redrive and names.redrive in added and read_mark(attributes, names):
        del leaving[names.redrive]
    left = space - attributes_size(leaving)
    for name, attribute in added.items():
        weight = attributes_size({name: attribute})
        if name not in leaving and len(leaving) < room and weight <= left:
            leaving[name] = attribute
            left -= weight
            put.append(name)
    return leaving, put


def with_trace(attributes: Attributes, trace: Mapping[str, str], *, space: int) -> dict[str, Attribute]:
    """Return the attributes with the fields of `trace` (traceparent, tracestate) in place of the message's own.

    If this makes over 10 attributes, or over `space` bytes of attributes, return the attributes unchanged.
    """
    own = {name for name in attributes if name.lower() in (TRACEPARENT, TRACESTATE)}
    kept = {name: attribute for name, attribute in attributes.items() if name not in own}
    traced = kept | {name: Attribute("String", text) for name, text in trace.items()}
    fits = len(traced) <= MOST_ATTRIBUTES and attributes_size(traced) <= space
    return traced if fits else dict(attributes)


def attributes_size(attributes: Attributes) -> int:
    """Return the size of attributes as SQS counts it: the bytes of names, types and values."""
    return sum(
        len(name.encode()) + len(attribute.type.encode()) + len(_raw(attribute.value))
        for name, attribute in attributes.items()
    )


def read_mark(attributes: Attributes, names: MarkNames) -> Mark | None:
    """Return the mark of a message that this service sent; None if the message has no valid mark."""
    found = _MARK.fullmatch(_text(attributes, names.redrive))
    return Mark(UUID(found[1]), int(found[2])) if found else None


def earlier_attempts(attributes: Attributes) -> int:
    """Return how often other tools redrove a letter, from the counters that they left in the letter's attributes."""
    texts = [_text(attributes, name) for name in EARLIER_COUNTERS]
    return min(sum(int(text) for text in texts if _COUNT.fullmatch(text)), EARLIER_ATTEMPTS)


def _text(attributes: Attributes, name: str | None) -> str:
    attribute = attributes.get(name) if name else None
    return attribute.value if attribute and isinstance(attribute.value, str) else ""


def _raw(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else value.encode(errors="surrogatepass")
