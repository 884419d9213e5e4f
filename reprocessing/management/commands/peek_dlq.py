"""The command `manage.py peek_dlq`, which shows messages of a DLQ without removing them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from django.core.management.base import CommandParser

from reprocessing.domain.lifecycle import STATE_NAMES
from reprocessing.domain.message.arn import resource_name
from reprocessing.domain.ordering.placement import LetterPlace
from reprocessing.domain.replay.verdicts import Park
from reprocessing.domain.sources import celery_task
from reprocessing.domain.sources.celery_task import TaskMessage
from reprocessing.gateways.sqs import Depth, QueueAddress, depth
from reprocessing.management.arguments import add_by, add_confirm, add_json, add_name, not_empty, whole_number
from reprocessing.management.console import Console, find_dlq, format_time
from reprocessing.models import AuditAct, AuditEntry, DeadLetterQueue
from reprocessing.pipeline.capture import peek
from reprocessing.pipeline.capture.peek import Peeked, PeekedMessage
from reprocessing.store.capture import capture_lease
from reprocessing.store.payloads import viewed_content

Json = dict[str, Any]
#: Max characters of a body that are shown.
_SHOWN = 400


class Command(Console):
    """Show messages of a DLQ without removing them.

    Without --confirm, shows only the number of messages. With --confirm, receives some messages, shows them, and makes
    them visible again at once. This raises the receive count of these messages. Captured messages are mostly invisible
    in SQS, so this command does not show them. To see captured messages, use redrive_status or the admin.

    Examples:
        peek_dlq orders
        peek_dlq orders --limit 3 --bodies --confirm
    """

    def add_arguments(self, parser: CommandParser) -> None:
        add_name(parser)
        parser.add_argument(
            "--limit",
            type=whole_number(1),
            default=10,
            metavar="N",
            help="max messages to receive (default: %(default)s)",
        )
        parser.add_argument(
            "--bodies", action="store_true", help=f"show the first {_SHOWN} characters of each message's body"
        )
        parser.add_argument(
            "--reveal", type=not_empty, metavar="WHY",
            help="with --bodies: show masked values, too; WHY is the reason, for the audit log",
        )  # fmt: skip
        add_by(parser)
        add_confirm(parser)
        add_json(parser)

    def answer(self, options: dict[str, Any]) -> None:
        dlq = find_dlq(options["name"])
        found = depth(QueueAddress(dlq.url, dlq.region, dlq.role_arn))
        capture_lease.note_depth(dlq.pk, visible=found.visible, in_flight=found.in_flight)
        peeked = peek.messages(dlq, limit=options["limit"]) if options["confirm"] else None
        if peeked is not None and options["reveal"] is None:
            peeked = masked(dlq, peeked)
        elif peeked is not None:
            AuditEntry.objects.create(
                act=AuditAct.REVEALED, dlq=dlq, by=options["by"], reason=options["reveal"], after={"revealed": True}
            )
        if options["json"]:
            self.report(_in_json(dlq, found, peeked, bodies=options["bodies"]))
        else:
            self.say("\n".join(screen(dlq, found, peeked, bodies=options["bodies"])))


def masked(dlq: DeadLetterQueue, peeked: Peeked) -> Peeked:
    """Return the received messages with values masked by the DLQ's masking rules."""
    if not viewed_content.rules_of(dlq):
        return peeked
    return replace(peeked, messages=[_masked(dlq, one) for one in peeked.messages])


def _masked(dlq: DeadLetterQueue, one: PeekedMessage) -> PeekedMessage:
    body = viewed_content.masked(dlq, one.body, {}).body
    return replace(one, body=body, task=celery_task.read(body) if isinstance(one.task, TaskMessage) else one.task)


def screen(dlq: DeadLetterQueue, found: Depth, peeked: Peeked | None, *, bodies: bool) -> Iterable[str]:
    """Yield the lines to print: the number of messages in the DLQ, then the received messages.

    In a dry run, `peeked` is None: no messages were received.
    """
    others = f"{found.in_flight:,} in flight, {found.delayed:,} delayed"
    yield f"{dlq.name}: about {found.visible:,} message{'' if found.visible == 1 else 's'} visible, {others}"
    if peeked is None:
        yield "With --confirm, some visible messages are received, shown and returned; this raises their receive count."
        return
    if not peeked.messages:
        yield "No message could be received."
    for one in peeked.messages:
        yield ""
        yield from _message(one, bodies=bodies)
    if peeked.kept:
        yield f"{peeked.kept} could not be returned; they become visible again in {peek.VISIBILITY} s."


def _message(one: PeekedMessage, *, bodies: bool) -> Iterable[str]:
    known = f", already captured: {STATE_NAMES.get(one.known, one.known)}" if one.known else ""
    yield f"{one.message_id}{known}"
    source = resource_name(one.source or "") or "unknown"
    yield f"  sent {format_time(one.sent_at)}, received {one.receives} times, {one.size:,} bytes, source: {source}"
    if one.attributes:
        yield f"  attributes: {', '.join(one.attributes)}"
    yield f"  {_where(one.where)}"
    if isinstance(one.task, TaskMessage):
        yield f"  {_task(one.task)}"
        if bodies:
            yield f"  called with {shown(one.task.called_with.encode())}"
    yield from (f"  {shown(cause.encode())}" for cause in one.causes)
    if bodies:
        yield f"  {shown(one.body)}"


def _where(where: LetterPlace | Park) -> str:
    match where:
        case Park(reason, detail):
            return f"would be parked: {reason.sentence} {detail}".rstrip()
        case LetterPlace(key=None):
            return "no ordering key"
        case LetterPlace():
            key = shown(json.dumps(where.key, ensure_ascii=False).encode())
            return f"ordering key {key}, idempotency key {shown(where.idempotency_key.encode())}"


def _task(found: TaskMessage) -> str:
    said = {"id": found.id, "eta": found.eta, "expires": found.expires, "group": found.group}
    details = [f"retried {found.retries} times", *(f"{name} {text}" for name, text in said.items() if text)]
    return shown(f"task {found.task or f'not shown ({found.opaque})'}, {', '.join(details)}".encode())


def shown(body: bytes) -> str:
    """Return the first 400 characters of a body on one line, with control characters escaped.

    If the body is not UTF-8, return its first 200 bytes in hexadecimal.
    """
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return f"not text: {body[: _SHOWN // 2].hex()}{'…' if len(body) > _SHOWN // 2 else ''}"
    plain = "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text[:_SHOWN])
    return plain + ("…" if len(text) > _SHOWN else "")


def _in_json(dlq: DeadLetterQueue, found: Depth, peeked: Peeked | None, *, bodies: bool) -> Json:
    depths = {"visible": found.visible, "in_flight": found.in_flight, "delayed": found.delayed}
    messages = None if peeked is None else [_message_in_json(one, bodies=bodies) for one in peeked.messages]
    return {"dlq": dlq.name, "dry_run": peeked is None, "depth": depths, "messages": messages}


def _message_in_json(one: PeekedMessage, *, bodies: bool) -> Json:
    place = one.where if isinstance(one.where, LetterPlace) else None
    park = one.where if isinstance(one.where, Park) else None
    return {
        "message_id": one.message_id,
        "sent_at": one.sent_at,
        "source": one.source,
        "receives": one.receives,
        "size": one.size,
        "attributes": list(one.attributes),
        "state": one.known,
        "ordering_key": place and place.key,
        "idempotency_key": place and place.idempotency_key,
        "would_be_parked": park and {"reason": park.reason, "detail": park.detail},
        "task": _task_in_json(one.task, bodies=bodies) if isinstance(one.task, TaskMessage) else None,
        "causes": list(one.causes),
        **({"body": shown(one.body)} if bodies else {}),
    }


def _task_in_json(found: TaskMessage, *, bodies: bool) -> Json:
    return {
        "name": found.task or None,
        "id": found.id or None,
        "retries": found.retries,
        "eta": found.eta or None,
        "expires": found.expires or None,
        "group": found.group or None,
        "not_shown": found.opaque or None,
        **({"called_with": shown(found.called_with.encode())} if bodies else {}),
    }
