"""A letter as it leaves for its target: what it was, with the declared additions, in the form that the target takes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from reprocessing.conf import Conf
from reprocessing.domain import answers, event, marks, notification, secret, shape, signature, webhook
from reprocessing.domain.carrier import Invocation, Post
from reprocessing.domain.envelope import Attribute, Departure, unpack
from reprocessing.domain.event import Event
from reprocessing.domain.identity import deduplication_id
from reprocessing.domain.lifecycle import ParkedReason
from reprocessing.domain.notification import Notification, Publication
from reprocessing.domain.projection import Unreadable
from reprocessing.domain.shape import ShapeKind
from reprocessing.domain.task_rewriting import Adaptation, leaving, renewed_id
from reprocessing.domain.verdict import NotSent, Refused
from reprocessing.models import Target
from reprocessing.models.intent import Intended
from reprocessing.models.target import TargetKind


@dataclass(frozen=True, slots=True)
class _Content:
    """What the target is to be given of the letter itself."""

    body: bytes
    attributes: dict[str, Attribute]
    kind: ShapeKind | None = None


def departure(one: Intended, target: Target, conf: Conf, dlq: str) -> Departure | Refused:
    """For a queue or a topic; marks where there is room for them."""
    content = _content(one, target)
    if isinstance(content, Refused):
        return content
    space = target.size_limit - len(content.body)
    attributes, _ = marks.addressed(content.attributes, _marks(one, conf, dlq), conf.marks, space=space)
    return Departure(
        attempt=one.attempt_id,
        body=content.body,
        attributes=attributes,
        group_id=one.system.get("MessageGroupId") or (one.message_id if target.fifo else None),
        deduplication_id=deduplication_id(one.public_id, one.epoch) if target.fifo else None,
        trace_header=one.system.get("AWSTraceHeader"),
    )


def publication(one: Intended, target: Target, conf: Conf, dlq: str) -> Publication | Refused:
    """For a topic: what was published, where the letter is a notification; else the letter itself."""
    found = departure(one, target, conf, dlq)
    if isinstance(found, Refused):
        return found
    group, deduplication = (found.group_id, found.deduplication_id) if target.fifo else (None, None)
    read = notification.read(found.body)
    if isinstance(read, Unreadable):
        return Publication(
            attempt=found.attempt, message=found.body, attributes=found.attributes, group_id=group,
            deduplication_id=deduplication,
        )  # fmt: skip
    again = notification.publication(read, attempt=found.attempt, group_id=group, deduplication_id=deduplication)
    if isinstance(again, Unreadable):
        return _unsupported(again)
    space = target.size_limit - len(again.message)
    attributes, _ = marks.addressed(again.attributes, _marks(one, conf, dlq), conf.marks, space=space)
    return replace(again, attributes=attributes)


def happening(one: Intended) -> Event | Refused:
    """For a bus, which takes events and nothing else; there is no place for marks in one."""
    read = event.read(bytes(one.body), attempt=one.attempt_id, trace_header=one.system.get("AWSTraceHeader"))
    return _unsupported(read) if isinstance(read, Unreadable) else read


def call(one: Intended, target: Target, conf: Conf, dlq: str) -> Post | Invocation | NotSent | Refused:
    """For an endpoint or a function."""
    content = _content(one, target)
    if isinstance(content, Refused):
        return content
    if target.kind == TargetKind.LAMBDA:
        return Invocation(one.attempt_id, target.arn, target.region, target.role_arn, content.body, target.timeout)
    signed = _signature(one, target, conf, content.body)
    if isinstance(signed, NotSent):
        return signed
    headers = (*_headers(one, target, conf, dlq, content), *signed)
    return Post(one.attempt_id, target.url, content.body, headers, target.timeout, answers.parse(target.answers))


def _marks(one: Intended, conf: Conf, dlq: str) -> dict[str, Attribute]:
    return marks.marks(
        conf.marks, marks.Mark(one.public_id, one.no), idempotency_key=one.idempotency_key or one.message_id,
        message_id=one.message_id, reprocessed_from=dlq,
    )  # fmt: skip


def _headers(one: Intended, target: Target, conf: Conf, dlq: str, content: _Content) -> tuple[tuple[str, str], ...]:
    """What an endpoint is told beside the body; a subscriber of a topic what SNS would have told it."""
    read = notification.read(content.body) if content.kind is ShapeKind.SNS else None
    usual = notification.CONTENT_TYPE if isinstance(read, Notification) else target.content_type
    headers = webhook.headers(
        _marks(one, conf, dlq), conf.marks, attributes=content.attributes, body=content.body, content_type=usual
    )
    return (*headers, *notification.headers(read)) if isinstance(read, Notification) else headers


def _signature(one: Intended, target: Target, conf: Conf, body: bytes) -> tuple[tuple[str, str], ...] | NotSent:
    """What shows the endpoint that the letter came from here, where it asks for that."""
    if not target.secret:
        return ()
    key = secret.key(conf.secrets.get(target.secret, secret.PREFIX))
    if not key:
        return NotSent(f"the secret {target.secret} is not among REDRIVE_SECRETS of this process")
    return signature.headers(key, message_id=str(one.public_id), now=one.opened_at, body=body)


def _content(one: Intended, target: Target) -> _Content | Refused:
    body, own = bytes(one.body), unpack(bytes(one.attributes))
    found = shape.recognise(body, own, one.system)
    if found is not None:
        parcel = shape.parcel(found, body, target.kind)
        if isinstance(parcel, Unreadable):
            return _unsupported(parcel)
        left = {name: attribute for name, attribute in own.items() if name not in shape.OF_ITS_DEATH}
        return _Content(parcel, left, found.kind)
    if target.kind == TargetKind.CELERY:
        task = leaving(
            body, _adaptation(one, target), now=one.opened_at, died_in=_name(one.origin_arn or ""),
            goes_to=_name(target.arn), released=one.released,
        )  # fmt: skip
        return task if isinstance(task, Refused) else _Content(task, own)
    return _Content(body, own)


def _unsupported(why: Unreadable) -> Refused:
    reason = ParkedReason.UNSUPPORTED_TARGET
    return Refused(reason.value, why.why, poison=True, reason=reason)


def _adaptation(one: Intended, target: Target) -> Adaptation:
    return Adaptation(
        strips_eta=target.strips_eta,
        strips_expires=target.strips_expires,
        resets_retries=target.resets_retries,
        new_id=renewed_id(one.public_id, one.epoch) if target.renews_id else None,
    )


def _name(arn: str) -> str:
    return arn.rpartition(":")[2]
