"""Make the message or request to a target: the letter's body and attributes, and the service's own attributes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from reprocessing.conf import Conf
from reprocessing.domain.lifecycle import ParkedReason
from reprocessing.domain.message import redrive_attributes
from reprocessing.domain.message.envelope import Attribute, Attributes, OutgoingMessage, unpack_attributes
from reprocessing.domain.message.identity import deduplication_id
from reprocessing.domain.message.json_view import Unreadable
from reprocessing.domain.replay.verdicts import NotSent, Refused
from reprocessing.domain.sources import eventbridge_event, failed_delivery, sns_notification
from reprocessing.domain.sources.celery_rewriting import TaskChanges, body_to_send, new_task_id
from reprocessing.domain.sources.eventbridge_event import Event
from reprocessing.domain.sources.failed_delivery import FailedDeliveryKind
from reprocessing.domain.sources.sns_notification import Notification, Publication
from reprocessing.domain.targets import http_responses, signing_secret, webhook_headers, webhook_signature
from reprocessing.domain.targets.async_sender import HttpCall, LambdaCall
from reprocessing.domain.targets.target_kind import TargetKind
from reprocessing.models import Target
from reprocessing.store.replay.intent import IntendedSend

NO_TRACE: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class _Content:
    body: bytes
    attributes: dict[str, Attribute]
    kind: FailedDeliveryKind | None = None


def queue_message(
    letter: IntendedSend, target: Target, conf: Conf, dlq: str, trace: Mapping[str, str] = NO_TRACE
) -> OutgoingMessage | Refused:
    """Return the message for a queue; `Refused` if the letter cannot be sent to the queue.

    The service adds as many redrive attributes as fit, then the trace fields (`trace`). `dlq`: the DLQ's name.
    """
    content = _content(letter, target)
    if isinstance(content, Refused):
        return content
    space = target.size_limit - len(content.body)
    attributes = _attributes(content.attributes, letter, conf, dlq, trace, space=space)
    return OutgoingMessage(
        attempt=letter.attempt_id, body=content.body, attributes=attributes,
        group_id=letter.system.get("MessageGroupId") or (letter.message_id if target.fifo else None),
        deduplication_id=deduplication_id(letter.public_id, letter.epoch) if target.fifo else None,
        trace_header=letter.system.get("AWSTraceHeader"),
    )  # fmt: skip


def topic_message(
    letter: IntendedSend, target: Target, conf: Conf, dlq: str, trace: Mapping[str, str] = NO_TRACE
) -> Publication | Refused:
    """Return the message for a topic; `Refused` if the letter cannot be published to the topic.

    If the letter is a notification that SNS delivered, the message inside the notification is published. `dlq`: the
    DLQ's name.
    """
    found = queue_message(letter, target, conf, dlq, trace)
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
    return replace(again, attributes=_attributes(again.attributes, letter, conf, dlq, trace, space=space))


def bus_event(letter: IntendedSend) -> Event | Refused:
    """Return the event for an event bus; `Refused` if the letter is not an event.

    No redrive attributes are added, because an event has no place for them.
    """
    read = eventbridge_event.read(
        bytes(letter.body), attempt=letter.attempt_id, trace_header=letter.system.get("AWSTraceHeader")
    )
    return _unsupported(read) if isinstance(read, Unreadable) else read


def slow_request(
    letter: IntendedSend, target: Target, conf: Conf, dlq: str, trace: Mapping[str, str] = NO_TRACE
) -> HttpCall | LambdaCall | NotSent | Refused:
    """Return the request to an HTTP endpoint (with the trace fields as headers) or to a Lambda function.

    If the letter cannot be sent there, return `Refused`. If the secret that signs the request is missing in this
    process, return `NotSent`. `dlq`: the DLQ's name.
    """
    content = _content(letter, target)
    if isinstance(content, Refused):
        return content
    if target.kind == TargetKind.LAMBDA:
        return LambdaCall(letter.attempt_id, target.arn, target.region, target.role_arn, content.body, target.timeout)
    signed = _signature(letter, target, conf, content.body)
    if isinstance(signed, NotSent):
        return signed
    headers = (*_headers(letter, target, conf, dlq, content), *signed, *trace.items())
    return HttpCall(
        letter.attempt_id,
        target.url,
        content.body,
        headers,
        target.timeout,
        http_responses.parse_answers(target.answers),
    )


def _attributes(  # noqa: PLR0913  # arguments are the parts of a message
    attributes: Attributes, letter: IntendedSend, conf: Conf, dlq: str, trace: Mapping[str, str], *, space: int
) -> dict[str, Attribute]:
    made, put = redrive_attributes.attributes_to_send(
        attributes, _marks(letter, conf, dlq), conf.marks, space=space
    )  # fmt: skip
    # Without the redrive id, a return is recognised by its attributes, which trace fields would change.
    if trace and conf.marks.redrive in put:
        return redrive_attributes.with_trace(made, trace, space=space)
    return made


def _marks(letter: IntendedSend, conf: Conf, dlq: str) -> dict[str, Attribute]:
    return redrive_attributes.marks(
        conf.marks, redrive_attributes.Mark(letter.public_id, letter.no),
        idempotency_key=letter.idempotency_key or letter.message_id, message_id=letter.message_id, reprocessed_from=dlq,
    )  # fmt: skip


def _headers(
    letter: IntendedSend, target: Target, conf: Conf, dlq: str, content: _Content
) -> tuple[tuple[str, str], ...]:
    """Return the headers of a request to an HTTP endpoint.

    If the letter is a failed delivery by SNS, the headers that SNS would have sent are included.
    """
    read = sns_notification.read(content.body) if content.kind is FailedDeliveryKind.SNS else None
    usual = sns_notification.CONTENT_TYPE if isinstance(read, Notification) else target.content_type
    headers = webhook_headers.headers(
        _marks(letter, conf, dlq), conf.marks, attributes=content.attributes, body=content.body, content_type=usual
    )
    return (*headers, *sns_notification.headers(read)) if isinstance(read, Notification) else headers


def _signature(letter: IntendedSend, target: Target, conf: Conf, body: bytes) -> tuple[tuple[str, str], ...] | NotSent:
    """Return the headers that sign the request; empty: the target has no secret.

    Return `NotSent` if REDRIVE_SECRETS of this process lacks the target's secret.
    """
    if not target.secret:
        return ()
    key = signing_secret.secret_bytes(conf.secrets.get(target.secret, signing_secret.PREFIX))
    if not key:
        return NotSent(f"the secret {target.secret} is not among REDRIVE_SECRETS of this process")
    return webhook_signature.headers(key, message_id=str(letter.public_id), now=letter.opened_at, body=body)


def _content(letter: IntendedSend, target: Target) -> _Content | Refused:
    body, own = bytes(letter.body), unpack_attributes(bytes(letter.attributes))
    found = failed_delivery.recognise(body, own, letter.system)
    if found is not None:
        parcel = failed_delivery.original_input(found, body, target.kind)
        if isinstance(parcel, Unreadable):
            return _unsupported(parcel)
        left = {name: attribute for name, attribute in own.items() if name not in failed_delivery.FAILURE_ATTRIBUTES}
        return _Content(parcel, left, found.kind)
    if target.kind == TargetKind.CELERY:
        task = body_to_send(
            body, _adaptation(letter, target), now=letter.opened_at, source_queue=_name(letter.source_arn or ""),
            target_queue=_name(target.arn), released=letter.released,
        )  # fmt: skip
        return task if isinstance(task, Refused) else _Content(task, own)
    return _Content(body, own)


def _unsupported(why: Unreadable) -> Refused:
    reason = ParkedReason.UNSUPPORTED_TARGET
    return Refused(reason.value, why.why, poison=True, reason=reason)


def _adaptation(letter: IntendedSend, target: Target) -> TaskChanges:
    return TaskChanges(
        strips_eta=target.strips_eta, strips_expires=target.strips_expires, resets_retries=target.resets_retries,
        new_id=new_task_id(letter.public_id, letter.epoch) if target.renews_id else None,
    )  # fmt: skip


def _name(arn: str) -> str:
    return arn.rpartition(":")[2]
