"""A letter's place by its dlq's policy, or the objection to giving it one."""

from __future__ import annotations

from reprocessing.domain.lifecycle import ParkedReason
from reprocessing.domain.message.envelope import unpack
from reprocessing.domain.message.identity import LetterFacts, Source
from reprocessing.domain.ordering.placement import Place, Policy, place
from reprocessing.domain.replay.verdicts import Park
from reprocessing.domain.sources import celery_task
from reprocessing.models import DeadLetterQueue
from reprocessing.models.target import TargetKind
from reprocessing.pipeline.capture import find_source
from reprocessing.store.runs.enlistment import Placed, Unplaced

_READ_FROM_BODIES = (Source.BODY, Source.CONTENT_HASH)


def policy_of(dlq: DeadLetterQueue) -> Policy:
    """Where the dlq's letters carry their keys, as it says now."""
    return Policy.of(
        fifo=dlq.fifo,
        ordering=dlq.ordering_key,
        sequence=dlq.sequence,
        idempotency=dlq.idempotency_key,
        missing_key=dlq.missing_key,
    )


def reads_bodies(policy: Policy) -> bool:
    """Whether a key is read from the letters' bodies."""
    return any(one.source in _READ_FROM_BODIES for one in (policy.ordering, policy.sequence, policy.idempotency))


def letter(policy: Policy, one: Unplaced) -> Placed:
    """Where one letter stands, or why that is not known; with its place perhaps what speaks against sending it."""
    facts = LetterFacts(one.message_id, bytes(one.body), unpack(bytes(one.attributes)), one.system)
    if one.origin_id is None:
        detail = find_source.told(facts.body, facts.attributes, facts.system)
        return Placed(one.id, objection=ParkedReason.UNKNOWN_ORIGIN, detail=detail)
    found = place(policy, facts)
    match found:
        case Park(reason, detail):
            return Placed(one.id, objection=reason, detail=detail)
        case Place():
            # A key that is the message id can have no twin: it needs no claim.
            key = found.idempotency_key if found.idempotency_key != one.message_id else None
            over = _objection(one)
            objection, detail = (over.reason, over.detail) if over else ("", "")
            return Placed(one.id, objection, detail, found.key, found.key_hash, found.single, found.sequence, key)


def _objection(one: Unplaced) -> Park | None:
    """Why its target had better not get it, as far as one can tell before it goes."""
    if one.size_limit is not None and one.size > one.size_limit:
        return Park(ParkedReason.TOO_LARGE, f"{one.size:,} bytes; its target takes {one.size_limit:,}")
    if one.target_kind != TargetKind.CELERY:
        return None
    found = celery_task.read(bytes(one.body))
    return celery_task.objection(found, now=one.asked_at, strips_expires=bool(one.strips_expires))
