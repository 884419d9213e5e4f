"""A letter as it leaves for its target: what it was, with the declared additions, in the form that the target takes."""

from __future__ import annotations

from reprocessing.conf import Conf
from reprocessing.domain import answers, marks
from reprocessing.domain.carrier import Invocation, Post
from reprocessing.domain.envelope import Departure, unpack
from reprocessing.domain.identity import deduplication_id
from reprocessing.domain.verdict import Refused
from reprocessing.models import Target
from reprocessing.models.intent import Intended
from reprocessing.models.target import TargetKind


def departure(one: Intended, target: Target, conf: Conf, dlq: str) -> Departure | Refused:
    """For a queue or a topic; marks where there is room for them."""
    own = unpack(bytes(one.attributes))
    body = bytes(one.body)
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
    if target.kind == TargetKind.LAMBDA:
        return Invocation(one.attempt_id, target.arn, target.region, target.role_arn, bytes(one.body), target.timeout)
    headers = (("Content-Type", "application/json"), ("Idempotency-Key", one.idempotency_key or one.message_id))
    return Post(one.attempt_id, target.url, bytes(one.body), headers, target.timeout, answers.parse(target.answers))
