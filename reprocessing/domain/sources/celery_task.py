"""Read a Celery task message without running any code of the message.

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
from reprocessing.domain.sources.celery_envelope import LIMIT, Envelope, NotATask, NotShown

__all__ = ["LIMIT", "NotATask", "TaskMessage", "TaskReading", "Unreadable", "celery_time", "read", "why_not_send"]

#: Celery's built-in tasks that start other tasks or wait for other tasks.
_MANY = frozenset({"celery.chord", "celery.chord_unlock", "celery.group"})
#: Times without a zone are read in UTC+14, where a local time comes earliest, so that no expired task is sent.
_EARLIEST = timezone(timedelta(hours=14))
ONE, TWO = 1, 2  # Celery's protocols
_PAYLOAD_PARTS = 3  # args, kwargs, and the tasks to call afterwards


@dataclass(frozen=True)
class TaskMessage:
    """One Celery task message. Its texts come from outside and are not trusted.

    Attributes:
        protocol: Celery's message protocol, 1 or 2.
        fields: the headers, or the payload of protocol 1; empty if the payload is not shown.
        limit: most bytes of the payload that are read.
    """

    envelope: Envelope
    protocol: int
    fields: Mapping[str, JsonValue] = field(repr=False)
    limit: int = LIMIT

    @property
    def task(self) -> str:
        """Return the task's name; empty: not known."""
        return self._text("task")

    @property
    def id(self) -> str:
        """Return the task's id; empty: not known."""
        return self._text("id")

    @property
    def root_id(self) -> str:
        """Return the id of the first task of the task's workflow; empty: not known."""
        return self._text("root_id")

    @property
    def group(self) -> str:
        """Return the id of the task's group; empty: none."""
        return self._text("group") or self._text("taskset")

    @property
    def retries(self) -> int:
        """Return how often the task was retried."""
        found = self.fields.get("retries")
        return found if isinstance(found, int) else 0

    @property
    def eta(self) -> str:
        """Return the earliest time to run the task, as the message has it; empty: there is none."""
        return _time(self.fields.get("eta"))

    @property
    def expires(self) -> str:
        """Return the time at which the task expires, as the message has it; empty: it does not expire."""
        return _time(self.fields.get("expires"))

    @property
    def time_limit(self) -> float | None:
        """Return the task's hard time limit in seconds; None: there is none."""
        match self.fields.get("timelimit"):
            case [int() | float() as hard, _] if not isinstance(hard, bool):
                return float(hard)
            case _:
                return None

    @property
    def routing_key(self) -> str:
        """Return the name that Celery uses for the queue that the task was first sent to; empty: not known."""
        match self.envelope.properties.get("delivery_info"):
            case {"routing_key": str(name)}:
                return name
            case _:
                return ""

    @property
    def opaque(self) -> str:
        """Return why the arguments are not shown; empty: the arguments are shown."""
        return self._payload.why if isinstance(self._payload, NotShown) else ""

    @property
    def args(self) -> JsonValue:
        """Return the positional arguments; None: not shown."""
        return self._arguments[0]

    @property
    def kwargs(self) -> JsonValue:
        """Return the keyword arguments; None: not shown."""
        return self._arguments[1]

    @property
    def called_with(self) -> str:
        """Return the arguments as JSON. If the payload is not shown, return their description from the headers."""
        if self.opaque:
            return f"{self._text('argsrepr')} {self._text('kwargsrepr')}".strip()
        return " ".join(json.dumps(argument, ensure_ascii=False, default=str) for argument in self._arguments)

    @property
    def is_in_chord(self) -> bool:
        """Return whether a chord waits for the task."""
        match self._payload:
            case [_, _, {"chord": chord}] | {"chord": chord}:
                return bool(chord)
            case _:
                return False

    @property
    def is_of_group_or_chord(self) -> bool:
        """Return whether the task is part of a group or a chord, or starts a group or a chord."""
        return bool(self.group) or self.is_in_chord or self.task in _MANY

    @property
    def harm(self) -> str:
        """Return what harm the message does to a worker, beyond a failed task; empty: it does no harm.

        Celery 5.7.0 acknowledges a message that it cannot decode, so the message is lost. A message that lacks parts
        that its protocol requires stops the worker.
        """
        shape = self._payload
        if isinstance(shape, NotShown) and shape.damaged:
            return f"workers would discard it: {shape.why}"
        limits = self.fields.get("timelimit") or [None, None]
        whole = bool(self.id or not self.fields) and isinstance(limits, list)
        if self.protocol == TWO and not isinstance(shape, NotShown):
            whole = whole and (
                len(shape) == _PAYLOAD_PARTS if isinstance(shape, list) else isinstance(shape, dict) and "args" in shape
            )
        return "" if whole else "it lacks parts of a task message, and would stop the worker that receives it"

    @cached_property
    def _payload(self) -> JsonValue | NotShown:
        return celery_envelope.payload_json(self.envelope, limit=self.limit)

    @property
    def _arguments(self) -> tuple[JsonValue, JsonValue]:
        match self._payload:
            case [args, kwargs, _]:
                return args, kwargs
            case dict() as named:
                return named.get("args"), named.get("kwargs")
            case _:
                return None, None

    def _text(self, name: str) -> str:
        found = self.fields.get(name)
        return found if isinstance(found, str) else ""


TaskReading = TaskMessage | NotATask | Unreadable


def read(body: bytes, document: JsonValue | Unreadable | None = None, *, limit: int = LIMIT) -> TaskReading:
    """Return the Celery task message in a body, or why the body has none. Never raises, never runs a pickle.

    `document`: the result of `json_view.read` for the body; None: the body was not parsed yet.
    `limit`: max bytes of the unpacked payload.
    """
    envelope = celery_envelope.open_envelope(body, document)
    if not isinstance(envelope, Envelope):
        return envelope
    if "task" in envelope.headers:
        return TaskMessage(envelope, TWO, envelope.headers, limit)
    found = celery_envelope.payload_json(envelope, limit=limit)
    if isinstance(found, NotShown):
        lost = NotATask(f"it names no task, and {found.why}", "workers would discard it")
        return lost if found.damaged else TaskMessage(envelope, ONE, {}, limit)
    if isinstance(found, dict) and "task" in found:
        return TaskMessage(envelope, ONE, found, limit)
    return NotATask("it is a kombu message that names no task")


def why_not_send(found: TaskReading, *, now: datetime, strips_expires: bool = False) -> Park | None:
    """Return why a message should not be sent to Celery workers at `now`; None if it may be sent.

    `strips_expires`: the target removes the time of expiry, so an expired task may be sent.
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
        case TaskMessage(is_of_group_or_chord=True):
            reason = ParkedReason.PART_OF_GROUP
            why = "it is a part of a group of tasks" if found.group else "it is a part of a chord, or starts tasks"
        case TaskMessage():
            pass
        case _ as never:
            assert_never(never)
    return Park(reason, f"{why}.") if why else None


def celery_time(text: str) -> datetime | None:
    """Return the time that a text of Celery states, in UTC; None: the text is no valid time.

    A time without a zone is read in UTC+14, the earliest possible time, so that no expired task is sent.
    """
    try:
        found = datetime.fromisoformat(text)
        return (found if found.tzinfo else found.replace(tzinfo=_EARLIEST)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _over(message: TaskMessage, now: datetime) -> str:
    """Return a text that says that the task has expired, or may have expired; empty: it has not expired."""
    if message.expires:
        until = celery_time(message.expires)
        if until is None:
            return "its expiry is not a readable time"
        return f"it expired at {until:%Y-%m-%d %H:%M:%S} UTC" if until <= now else ""
    # In protocol 1, the time of expiry is in the payload. The property `expiration` shows only that the task expires.
    hidden = message.protocol == ONE and message.opaque and message.envelope.properties.get("expiration") is not None
    return "it expires, but its payload, which has the time, is not shown" if hidden else ""


def _time(value: JsonValue) -> str:
    match value:
        case str():
            return value
        case {"__type__": "datetime", "__value__": str(text)}:
            return text
        case _:
            return ""
