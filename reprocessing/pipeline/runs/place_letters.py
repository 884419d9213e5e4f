"""Give a letter its place by its DLQ's settings, or the objection to sending it."""

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
    """Return where the DLQ's letters carry their keys, by its present settings."""
    return Policy.of(
        fifo=dlq.fifo,
        ordering=dlq.ordering_key,
        sequence=dlq.sequence,
        idempotency=dlq.idempotency_key,
        missing_key=dlq.missing_key,
    )


def reads_bodies(policy: Policy) -> bool:
    """Return whether a key is read from the letters' bodies."""
    selectors = (policy.ordering, policy.sequence, policy.idempotency)
    return any(selector.source in _READ_FROM_BODIES for selector in selectors)


def letter(policy: Policy, unplaced: Unplaced) -> Placed:
    """Return a letter's place, its objection, or both."""
    facts = LetterFacts(
        unplaced.message_id, bytes(unplaced.body), unpack(bytes(unplaced.attributes)), unplaced.system
    )  # fmt: skip
    if unplaced.origin_id is None:
        detail = find_source.told(facts.body, facts.attributes, facts.system)
        return Placed(unplaced.id, objection=ParkedReason.UNKNOWN_ORIGIN, detail=detail)
    found = place(policy, facts)
    match found:
        case Park(reason, detail):
            return Placed(unplaced.id, objection=reason, detail=detail)
        case Place():
            # A message id is unique: as an idempotency key it needs no claim.
            key = found.idempotency_key if found.idempotency_key != unplaced.message_id else None
            against = _objection(unplaced)
            objection, detail = (against.reason, against.detail) if against else ("", "")
            return Placed(unplaced.id, objection, detail, found.key, found.key_hash, found.single, found.sequence, key)


def _objection(unplaced: Unplaced) -> Park | None:
    if unplaced.size_limit is not None and unplaced.size > unplaced.size_limit:
        return Park(ParkedReason.TOO_LARGE, f"{unplaced.size:,} bytes; its target takes {unplaced.size_limit:,}")
    if unplaced.target_kind != TargetKind.CELERY:
        return None
    task = celery_task.read(bytes(unplaced.body))
    return celery_task.objection(task, now=unplaced.asked_at, strips_expires=bool(unplaced.strips_expires))
