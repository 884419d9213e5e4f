"""A letter as it leaves for its target: what it was, with the declared additions, in the form that the target takes."""

from __future__ import annotations

from typing import Final

from reprocessing.conf import Conf
from reprocessing.domain import answers, marks, shape
from reprocessing.domain.carrier import Invocation, Post
from reprocessing.domain.envelope import Attribute, Departure, unpack
from reprocessing.domain.identity import deduplication_id
from reprocessing.domain.lifecycle import ParkedReason
from reprocessing.domain.projection import Unreadable
from reprocessing.domain.task_rewriting import Adaptation, leaving, renewed_id
from reprocessing.domain.verdict import Refused
from reprocessing.models import Target
from reprocessing.models.intent import Intended
from reprocessing.models.target import TargetKind

#: What AWS adds to a letter that did not die in a queue; whoever failed to take it was not given these.
_OF_ITS_DEATH: Final = frozenset({
    "RequestID", "ErrorCode", "ErrorMessage", "RULE_ARN", "TARGET_ARN", "SCHEDULE_ARN", "EXECUTION_ID", "ERROR_CODE",
    "ERROR_MESSAGE", "EXHAUSTED_RETRY_CONDITION", "RETRY_ATTEMPTS", "IS_PAYLOAD_TRUNCATED",
})  # fmt: skip


def departure(one: Intended, target: Target, conf: Conf, dlq: str) -> Departure | Refused:
    """For a queue or a topic; marks where there is room for them."""
    content = _content(one, target)
    if isinstance(content, Refused):
        return content
    body, own = content
    added = marks.marks(
        conf.marks, marks.Mark(one.public_id, one.no), idempotency_key=one.idempotency_key or one.message_id,
        message_id=one.message_id, reprocessed_from=dlq,
    )  # fmt: skip
    attributes, _ = marks.addressed(own, added, conf.marks, space=target.size_limit - len(body))
    return Departure(
        attempt=one.attempt_id,
        body=body,
        attributes=attributes,
        group_id=one.system.get("MessageGroupId") or (one.message_id if target.fifo else None),
        deduplication_id=deduplication_id(one.public_id, one.epoch) if target.fifo else None,
        trace_header=one.system.get("AWSTraceHeader"),
    )


def call(one: Intended, target: Target, conf: Conf, dlq: str) -> Post | Invocation | Refused:
    """For an endpoint or a function."""
    content = _content(one, target)
    if isinstance(content, Refused):
        return content
    body, _ = content
    if target.kind == TargetKind.LAMBDA:
        return Invocation(one.attempt_id, target.arn, target.region, target.role_arn, body, target.timeout)
    headers = (("Content-Type", "application/json"), ("Idempotency-Key", one.idempotency_key or one.message_id))
    return Post(one.attempt_id, target.url, body, headers, target.timeout, answers.parse(target.answers))


def _content(one: Intended, target: Target) -> tuple[bytes, dict[str, Attribute]] | Refused:
    """What the target is to be given of the letter itself: body and attributes."""
    body, own = bytes(one.body), unpack(bytes(one.attributes))
    found = shape.recognise(body, own, one.system)
    if found is not None:
        parcel = shape.parcel(found, body, target.kind)
        if isinstance(parcel, Unreadable):
            reason = ParkedReason.UNSUPPORTED_TARGET
            return Refused(reason.value, parcel.why, poison=True, reason=reason)
        return parcel, {name: attribute for name, attribute in own.items() if name not in _OF_ITS_DEATH}
    if target.kind == TargetKind.CELERY:
        task = leaving(
            body, _adaptation(one, target), now=one.opened_at, died_in=_name(one.origin_arn or ""),
            goes_to=_name(target.arn), released=one.released,
        )  # fmt: skip
        return task if isinstance(task, Refused) else (task, own)
    return body, own


def _adaptation(one: Intended, target: Target) -> Adaptation:
    return Adaptation(
        strips_eta=target.strips_eta,
        strips_expires=target.strips_expires,
        resets_retries=target.resets_retries,
        new_id=renewed_id(one.public_id, one.epoch) if target.renews_id else None,
    )


def _name(arn: str) -> str:
    return arn.rpartition(":")[2]
