"""A Celery task message as it lies in a queue: what it is to do, read without running any of it.

Protocol 2 has its fields in the headers, protocol 1 in the payload (docs.celeryq.dev, Message Protocol).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from functools import cached_property
from typing import assert_never

from reprocessing.domain.lifecycle import ParkedReason
from reprocessing.domain.message.json_view import JsonValue, Unreadable
from reprocessing.domain.replay.verdicts import Park
from reprocessing.domain.sources import celery_envelope
from reprocessing.domain.sources.celery_envelope import LIMIT, Envelope, NotATask, Opaque

__all__ = ["LIMIT", "NotATask", "Read", "TaskMessage", "Unreadable", "moment", "objection", "read"]

#: Tasks of Celery's own that stand for others: run again, they start those, or wait for them.
_MANY = frozenset({"celery.chord", "celery.chord_unlock", "celery.group"})
#: A time without zone is the sender's: nowhere is it reached earlier than here.
_EARLIEST = timezone(timedelta(hours=14))
ONE, TWO = 1, 2  # Celery's protocols
_PAYLOAD_PARTS = 3  # args, kwargs, and what it is embedded in


@dataclass(frozen=True)
class TaskMessage:
    """One task message. What others wrote is text to be shown, and nothing to be trusted.

    Attributes:
        protocol: Celery's, 1 or 2.
        fields: headers, or the payload of protocol 1; none of a payload that is opaque.
        limit: bytes of payload that are read.
    """

    envelope: Envelope
    protocol: int
    fields: Mapping[str, JsonValue] = field(repr=False)
    limit: int = LIMIT

    @property
    def task(self) -> str:
        """The task's name; empty where nobody can say."""
        return self._text("task")

    @property
    def id(self) -> str:
        """The task's id."""
        return self._text("id")

    @property
    def root_id(self) -> str:
        """The id of the task that all of its workflow began with."""
        return self._text("root_id")

    @property
    def group(self) -> str:
        """The id of the group that it is a part of; empty: of none."""
        return self._text("group") or self._text("taskset")

    @property
    def retries(self) -> int:
        """How often it has been retried already."""
        found = self.fields.get("retries")
        return found if isinstance(found, int) else 0

    @property
    def eta(self) -> str:
        """Not to be run before, as it was written; empty: at once."""
        return _time(self.fields.get("eta"))

    @property
    def expires(self) -> str:
        """Not to be run after, as it was written; empty: never mind."""
        return _time(self.fields.get("expires"))

    @property
    def time_limit(self) -> float | None:
        """Seconds after which its worker ends it; None: it does not say."""
        match self.fields.get("timelimit"):
            case [int() | float() as hard, _] if not isinstance(hard, bool):
                return float(hard)
            case _:
                return None

    @property
    def routing_key(self) -> str:
        """The name of the queue to which its producer sent it, as Celery knows it."""
        match self.envelope.properties.get("delivery_info"):
            case {"routing_key": str(name)}:
                return name
            case _:
                return ""

    @property
    def opaque(self) -> str:
        """Why its arguments are not shown; empty: they are."""
        return self._payload.why if isinstance(self._payload, Opaque) else ""

    @property
    def args(self) -> JsonValue:
        """What it is called with, by position; None where that is not shown."""
        return self._arguments[0]

    @property
    def kwargs(self) -> JsonValue:
        """What it is called with, by name; None where that is not shown."""
        return self._arguments[1]

    @property
    def called_with(self) -> str:
        """Its arguments for people: as JSON; where its payload is not shown, as its producer wrote them out."""
        if self.opaque:
            return f"{self._text('argsrepr')} {self._text('kwargsrepr')}".strip()
        return " ".join(json.dumps(one, ensure_ascii=False, default=str) for one in self._arguments)

    @property
    def in_chord(self) -> bool:
        """Whether a chord waits for it."""
        return bool(self._embedding("chord"))

    @property
    def has_callbacks(self) -> bool:
        """Whether tasks follow when it has ended, well or not."""
        return any(bool(self._embedding(one)) for one in ("callbacks", "errbacks", "chain"))

    @property
    def of_many(self) -> bool:
        """Whether it is a part of a group or a chord, or stands for one."""
        return bool(self.group) or self.in_chord or self.task in _MANY

    @property
    def harm(self) -> str:
        """What it would do to whoever receives it, beyond failing; empty: nothing.

        Seen with Celery 5.7.0: what cannot be decoded is acknowledged, so it is lost; and a message without the parts
        that its protocol names ends the worker's consumer, which only rejects what it takes for an invalid task.
        """
        shape = self._payload
        if isinstance(shape, Opaque) and shape.damaged:
            return f"workers would throw it away: {shape.why}"
        limits = self.fields.get("timelimit") or [None, None]
        whole = bool(self.id or not self.fields) and isinstance(limits, list)
        if self.protocol == TWO and not isinstance(shape, Opaque):
            whole = whole and (
                len(shape) == _PAYLOAD_PARTS if isinstance(shape, list) else isinstance(shape, dict) and "args" in shape
            )
        return "" if whole else "parts of a task message are missing, without which a worker ends that receives it"

    @cached_property
    def _payload(self) -> JsonValue | Opaque:
        return celery_envelope.content(self.envelope, limit=self.limit)

    @property
    def _arguments(self) -> tuple[JsonValue, JsonValue]:
        match self._payload:
            case [args, kwargs, _]:
                return args, kwargs
            case dict() as named:
                return named.get("args"), named.get("kwargs")
            case _:
                return None, None

    def _embedding(self, name: str) -> JsonValue:
        match self._payload:
            case [_, _, dict() as embedding]:
                return embedding.get(name)
            case dict() as named:
                return named.get(name)
            case _:
                return None

    def _text(self, name: str) -> str:
        found = self.fields.get(name)
        return found if isinstance(found, str) else ""


Read = TaskMessage | NotATask | Unreadable


def read(body: bytes, document: JsonValue | Unreadable | None = None, *, limit: int = LIMIT) -> Read:
    """What a body is as a task message. Never raises; nothing is unpickled, and no more unpacked than `limit` bytes.

    Args:
        body: as it came from the queue.
        document: what `projection.read` says of it, where the caller knows that already.
        limit: bytes of payload.
    """
    envelope = celery_envelope.opened(body, document)
    if not isinstance(envelope, Envelope):
        return envelope
    if "task" in envelope.headers:
        return TaskMessage(envelope, TWO, envelope.headers, limit)
    found = celery_envelope.content(envelope, limit=limit)
    if isinstance(found, Opaque):
        lost = NotATask(f"it names no task, and {found.why}", "workers would throw it away")
        return lost if found.damaged else TaskMessage(envelope, ONE, {}, limit)
    if isinstance(found, dict) and "task" in found:
        return TaskMessage(envelope, ONE, found, limit)
    return NotATask("it is a kombu message that names no task")


def objection(found: Read, *, now: datetime, strips_expires: bool = False) -> Park | None:
    """Why a body that is to go to Celery workers had better not; None: it may.

    Args:
        found: what it is.
        now: the moment at which it would go.
        strips_expires: it would go without its expiry.
    """
    reason, why = ParkedReason.UNREADABLE_TASK, ""
    match found:
        case NotATask(what, harm):
            why = f"{what}; {harm}" if harm else what
        case Unreadable(what):
            why = what
        case TaskMessage() if found.harm:
            why = found.harm
        case TaskMessage() if not strips_expires and (over := _over(found, now)):
            reason, why = ParkedReason.EXPIRED, over
        case TaskMessage(task=""):
            why = found.opaque or "its task has no name"
        case TaskMessage(of_many=True):
            reason = ParkedReason.WAITS_FOR_A_WORD
            why = "it is a part of a group of tasks" if found.group else "it is a part of a chord, or stands for tasks"
        case TaskMessage():
            pass
        case _ as never:
            assert_never(never)
    return Park(reason, f"{why}.") if why else None


def moment(text: str) -> datetime | None:
    """The moment that Celery wrote, in UTC; without a zone the earliest that can be meant; None: it is none."""
    try:
        found = datetime.fromisoformat(text)
        return (found if found.tzinfo else found.replace(tzinfo=_EARLIEST)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _over(message: TaskMessage, now: datetime) -> str:
    """That it has expired, or may have; empty: it has not."""
    if message.expires:
        until = moment(message.expires)
        if until is None:
            return "its expiry is no time that can be read"
        return f"it expired at {until:%Y-%m-%d %H:%M:%S} UTC" if until <= now else ""
    # Of protocol 1 the moment is in the payload; only that there is one is told outside.
    hidden = message.protocol == ONE and message.opaque and message.envelope.properties.get("expiration") is not None
    return "it expires, and at which moment stands in its payload, which is not shown" if hidden else ""


def _time(value: JsonValue) -> str:
    """A time as text: kombu's JSON may write one as an object."""
    match value:
        case str():
            return value
        case {"__type__": "datetime", "__value__": str(text)}:
            return text
        case _:
            return ""
