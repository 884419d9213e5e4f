"""Find the trace contexts of a message, in all places where producers write them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from reprocessing.domain.message import trace_context
from reprocessing.domain.message.envelope import Attributes
from reprocessing.domain.message.json_view import Unreadable
from reprocessing.domain.message.trace_context import TRACEPARENT, TraceContext
from reprocessing.domain.sources import celery_envelope, sns_notification
from reprocessing.domain.sources.celery_envelope import Envelope

_XRAY: Final = "AWSTraceHeader"
_IN_BODY: Final = TRACEPARENT.encode()


def contexts(
    body: bytes, attributes: Attributes, system: Mapping[str, str], *, is_task: bool
) -> tuple[TraceContext, ...]:
    """Return the trace contexts of a message, one for each trace, the sender's context first. Never raises.

    These places are searched, in this order: message attributes, attributes of an SNS notification, headers of a Celery
    task, X-Ray header. The body is parsed only if no message attribute has a context. `system`: SQS's own attributes.
    `is_task`: whether the message goes to Celery workers.
    """
    found = dict[int, TraceContext]()
    for context in _candidates(body, attributes, system, is_task=is_task):
        if context is not None:
            found.setdefault(context.trace_id, context)
    return tuple(found.values())


def _candidates(
    body: bytes, attributes: Attributes, system: Mapping[str, str], *, is_task: bool
) -> Iterator[TraceContext | None]:
    own = _of_attributes(attributes)
    yield own
    if own is None and is_task:
        yield _of_task(body)
    elif own is None and _IN_BODY in body:
        yield _of_notification(body)
    yield trace_context.read_xray(system.get(_XRAY, ""))


def _of_attributes(attributes: Attributes) -> TraceContext | None:
    return trace_context.read_fields({name.lower(): attribute.value for name, attribute in attributes.items()})


def _of_notification(body: bytes) -> TraceContext | None:
    read = sns_notification.read(body)
    if isinstance(read, Unreadable):
        return None
    published = sns_notification.publication(read, attempt=0)
    return None if isinstance(published, Unreadable) else _of_attributes(published.attributes)


def _of_task(body: bytes) -> TraceContext | None:
    envelope = celery_envelope.open_envelope(body)
    return trace_context.read_fields(envelope.headers) if isinstance(envelope, Envelope) else None
