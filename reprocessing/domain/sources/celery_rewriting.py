"""Change a Celery task message as its target requires, and keep all other bytes of the message unchanged."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, TypeAlias
from uuid import NAMESPACE_OID, UUID, uuid5

from reprocessing.domain.lifecycle import ParkedReason
from reprocessing.domain.message import json_span
from reprocessing.domain.message.json_view import Unreadable
from reprocessing.domain.replay.verdicts import Refused
from reprocessing.domain.sources import celery_envelope, celery_task
from reprocessing.domain.sources.celery_envelope import NotATask, NotShown
from reprocessing.domain.sources.celery_task import ONE, TaskMessage


@dataclass(frozen=True, slots=True)
class TaskChanges:
    """The changes of a task message that a target of Celery workers requires.

    Attributes:
        queue: the name that the workers use for their queue; None: unchanged.
        strips_eta: whether the earliest time to run is removed. `strips_expires`: whether the expiry is removed.
        resets_retries: whether the number of retries is set to 0.
        new_id: the task's new id; None: unchanged. A task that is part of a group always keeps its id.
    """

    queue: str | None = None
    strips_eta: bool = False
    strips_expires: bool = False
    resets_retries: bool = False
    new_id: str | None = None


@dataclass(frozen=True, slots=True)
class Unchangeable:
    """The task message cannot be changed without damage to its other parts."""

    why: str


@dataclass(frozen=True, slots=True)
class _Change:
    """One change of the task message's JSON: the member at `path` gets `value`, or is removed (`goes`)."""

    path: tuple[str, ...]
    value: str | int | None = None
    goes: bool = False


#: The members of a JSON object to change, each with a JSON value, a nested object, or None to remove the member.
_Wanted: TypeAlias = "dict[str, bytes | _Wanted | None]"
_LEGAL: Final = re.compile(r"[^A-Za-z0-9_-]")


def body_to_send(  # noqa: PLR0913  # each by its name
    body: bytes, wanted: TaskChanges, *, now: datetime, source_queue: str, target_queue: str, released: bool = False
) -> bytes | Refused:
    """Return the body to send to Celery workers, or why it is not sent. Never raises.

    Expired messages, messages that would stop a worker, and messages that workers would discard are never sent. Other
    messages that workers should not get, such as a task of a group, are sent only after a person released them.

    Args:
        body: the letter's body.
        wanted: the changes that the target requires. If the message goes to another queue than before, this function
            sets `queue` itself.
        now: the time of sending.
        source_queue: the name of the SQS source queue; empty if it is not known.
        target_queue: the name of the SQS queue that the message is sent to.
        released: whether a person released the letter.
    """
    found = celery_task.read(body)
    over = celery_task.why_not_send(found, now=now, strips_expires=wanted.strips_expires)
    harm = found.harm if isinstance(found, TaskMessage | NotATask) else ""
    if over and (harm or over.reason is ParkedReason.EXPIRED or not released):
        return Refused(over.reason.value, over.detail, poison=True, reason=over.reason)
    if not isinstance(found, TaskMessage):
        return body  # a person released the message, although workers reject it
    if source_queue and source_queue != target_queue:
        wanted = replace(
            wanted, queue=celery_name(target_queue, source_queue=source_queue, routing_key=found.routing_key)
        )
    changed = _adapted(body, found, wanted)
    if isinstance(changed, Unchangeable):
        reason = ParkedReason.UNREADABLE_TASK
        why = f"It cannot be changed as its target requires: {changed.why}."
        return Refused(reason.value, why, poison=True, reason=reason)
    return changed


def new_task_id(letter: UUID, epoch: int) -> str:
    """Return a new task id for a letter. It changes only if `epoch` rises: after a known failure or an edit."""
    return str(uuid5(NAMESPACE_OID, f"{letter}:{epoch}"))


def celery_name(queue: str, *, source_queue: str, routing_key: str) -> str:
    """Return the name by which Celery workers probably call the SQS queue `queue`.

    kombu adds `queue_name_prefix` to names, and replaces characters that SQS forbids. The prefix is found by comparing
    the source queue's name with the routing key.
    """
    known = _in_sqs(routing_key)
    prefix = source_queue.removesuffix(known) if known and source_queue.endswith(known) else ""
    return queue.removeprefix(prefix) or queue


def _in_sqs(name: str) -> str:
    """Return a queue's name as kombu writes it for SQS (kombu.transport.SQS, entity_name)."""
    part = name.removesuffix(".fifo")
    return _LEGAL.sub("_", part.replace(".", "-")) + name[len(part) :]


def _adapted(body: bytes, message: TaskMessage, wanted: TaskChanges) -> bytes | Unchangeable:
    outside = list(_outside(message, wanted))
    inside = list(_inside(message, wanted))
    if message.protocol == ONE and message.opaque and wanted != TaskChanges(queue=wanted.queue):
        return Unchangeable(message.opaque)
    if message.protocol == ONE and inside:
        payload = _payload(message, inside)
        if isinstance(payload, Unchangeable):
            return payload
        outside.append(_Change(("body",), payload))
    elif inside:
        outside += [replace(change, path=("headers", *change.path)) for change in inside]
    if not outside:
        return body
    text = _changed(message.envelope.text.encode(), outside)
    return text if isinstance(text, Unchangeable) else celery_envelope.close_envelope(message.envelope, text.decode())


def _outside(message: TaskMessage, wanted: TaskChanges) -> Iterator[_Change]:
    """Yield the changes of the envelope's properties, which are for the broker."""
    if wanted.queue is not None and _in_sqs(message.routing_key) != _in_sqs(wanted.queue):
        # kombu uses the routing key to delete, reject, hide and retry the message. An unknown name stops the worker.
        yield _Change(("properties", "delivery_info", "exchange"), "")
        yield _Change(("properties", "delivery_info", "routing_key"), wanted.queue)
    properties = message.envelope.properties
    if wanted.strips_expires and "expiration" in properties:
        yield _Change(("properties", "expiration"), goes=True)
    is_named = message.id == properties.get("correlation_id")
    if wanted.new_id is not None and is_named and not message.is_of_group_or_chord:
        yield _Change(("properties", "correlation_id"), wanted.new_id)


def _inside(message: TaskMessage, wanted: TaskChanges) -> Iterator[_Change]:
    """Yield the changes of the task's own fields: in the headers, or (protocol 1) in the payload."""
    if wanted.strips_eta and message.fields.get("eta") is not None:
        yield _Change(("eta",))
    if wanted.strips_expires and message.fields.get("expires") is not None:
        yield _Change(("expires",))
    if wanted.resets_retries and message.fields.get("retries") not in (None, 0):
        yield _Change(("retries",), 0)
    if wanted.new_id is not None and not message.is_of_group_or_chord and message.id != wanted.new_id:
        yield _Change(("id",), wanted.new_id)
        if message.root_id == message.id:
            yield _Change(("root_id",), wanted.new_id)


def _payload(message: TaskMessage, changes: Sequence[_Change]) -> str | Unchangeable:
    raw = celery_envelope.unpack_payload(message.envelope, limit=message.limit)
    if isinstance(raw, NotShown):
        return Unchangeable(raw.why)
    changed = _changed(raw, changes)
    return changed if isinstance(changed, Unchangeable) else celery_envelope.pack_payload(message.envelope, changed)


def _changed(raw: bytes, changes: Sequence[_Change]) -> bytes | Unchangeable:
    wanted: _Wanted = {}
    for change in changes:
        level = wanted
        for name in change.path[:-1]:
            inner = level.setdefault(name, {})
            level = inner if isinstance(inner, dict) else {}
        level[change.path[-1]] = None if change.goes else json.dumps(change.value).encode()
    found = _put(raw, wanted)
    return Unchangeable(found.why) if isinstance(found, Unreadable) else found


def _put(raw: bytes, wanted: _Wanted) -> bytes | Unreadable:
    """Return a JSON object with the `wanted` changes; the bytes of its other values are unchanged."""
    members = json_span.member_bytes(raw)
    if isinstance(members, Unreadable):
        return members
    for name, value in wanted.items():
        if isinstance(value, dict):
            inner = members.get(name, b"")
            changed = _put(inner if inner.startswith(b"{") else b"{}", value)
            if isinstance(changed, Unreadable):
                return changed
            members[name] = changed
        elif value is not None:
            members[name] = value
        else:
            members.pop(name, None)
    return b"{" + b", ".join(json.dumps(name).encode() + b": " + value for name, value in members.items()) + b"}"
