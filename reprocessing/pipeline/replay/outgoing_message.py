"""A letter as it leaves for its target: what it was, with the declared additions, in the form that the target takes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from reprocessing.conf import Conf
from reprocessing.domain.lifecycle import ParkedReason
from reprocessing.domain.message import redrive_attributes
from reprocessing.domain.message.envelope import Attribute, Departure, unpack
from reprocessing.domain.message.identity import deduplication_id
from reprocessing.domain.message.json_view import Unreadable
from reprocessing.domain.replay.verdicts import NotSent, Refused
from reprocessing.domain.sources import eventbridge_event, failed_delivery, sns_notification
from reprocessing.domain.sources.celery_rewriting import Adaptation, leaving, renewed_id
from reprocessing.domain.sources.eventbridge_event import Event
from reprocessing.domain.sources.failed_delivery import ShapeKind
from reprocessing.domain.sources.sns_notification import Notification, Publication
from reprocessing.domain.targets import http_responses, signing_secret, webhook_headers, webhook_signature
from reprocessing.domain.targets.async_sender import Invocation, Post
from reprocessing.models import Target
from reprocessing.models.target import TargetKind
from reprocessing.store.replay.intent import Intended


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
    attributes, _ = redrive_attributes.addressed(content.attributes, _marks(one, conf, dlq), conf.marks, space=space)
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
    read = sns_notification.read(found.body)
    if isinstance(read, Unreadable):
        return Publication(
            attempt=found.attempt, message=found.body, attributes=found.attributes, group_id=group,
            deduplication_id=deduplication,
        )  # fmt: skip
    again = sns_notification.publication(read, attempt=found.attempt, group_id=group, deduplication_id=deduplication)
    if isinstance(again, Unreadable):
        return _unsupported(again)
    space = target.size_limit - len(again.message)
    attributes, _ = redrive_attributes.addressed(again.attributes, _marks(one, conf, dlq), conf.marks, space=space)
    return replace(again, attributes=attributes)


def happening(one: Intended) -> Event | Refused:
    """For a bus, which takes events and nothing else; there is no place for marks in one."""
    read = eventbridge_event.read(
        bytes(one.body), attempt=one.attempt_id, trace_header=one.system.get("AWSTraceHeader")
    )
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
    return Post(one.attempt_id, target.url, content.body, headers, target.timeout, http_responses.parse(target.answers))


def _marks(one: Intended, conf: Conf, dlq: str) -> dict[str, Attribute]:
    return redrive_attributes.marks(
        conf.marks, redrive_attributes.Mark(one.public_id, one.no),
        idempotency_key=one.idempotency_key or one.message_id, message_id=one.message_id, reprocessed_from=dlq,
    )  # fmt: skip


def _headers(one: Intended, target: Target, conf: Conf, dlq: str, content: _Content) -> tuple[tuple[str, str], ...]:
    """What an endpoint is told beside the body; a subscriber of a topic what SNS would have told it."""
    read = sns_notification.read(content.body) if content.kind is ShapeKind.SNS else None
    usual = sns_notification.CONTENT_TYPE if isinstance(read, Notification) else target.content_type
    headers = webhook_headers.headers(
        _marks(one, conf, dlq), conf.marks, attributes=content.attributes, body=content.body, content_type=usual
    )
    return (*headers, *sns_notification.headers(read)) if isinstance(read, Notification) else headers


def _signature(one: Intended, target: Target, conf: Conf, body: bytes) -> tuple[tuple[str, str], ...] | NotSent:
    """What shows the endpoint that the letter came from here, where it asks for that."""
    if not target.secret:
        return ()
    key = signing_secret.key(conf.secrets.get(target.secret, signing_secret.PREFIX))
    if not key:
        return NotSent(f"the secret {target.secret} is not among REDRIVE_SECRETS of this process")
    return webhook_signature.headers(key, message_id=str(one.public_id), now=one.opened_at, body=body)


def _content(one: Intended, target: Target) -> _Content | Refused:
    body, own = bytes(one.body), unpack(bytes(one.attributes))
    found = failed_delivery.recognise(body, own, one.system)
    if found is not None:
        parcel = failed_delivery.parcel(found, body, target.kind)
        if isinstance(parcel, Unreadable):
            return _unsupported(parcel)
        left = {name: attribute for name, attribute in own.items() if name not in failed_delivery.OF_ITS_DEATH}
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
