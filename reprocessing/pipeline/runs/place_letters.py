"""Compute a letter's place (ordering key, sequence, idempotency key), or why it cannot be sent."""

from __future__ import annotations

from reprocessing.domain.lifecycle import ParkedReason
from reprocessing.domain.message.envelope import unpack_attributes
from reprocessing.domain.message.identity import LetterFacts, SelectorSource
from reprocessing.domain.ordering.placement import KeyPolicy, LetterPlace, choose_place
from reprocessing.domain.replay.verdicts import Park
from reprocessing.domain.sources import celery_task
from reprocessing.models import DeadLetterQueue
from reprocessing.models.target import TargetKind
from reprocessing.pipeline.capture import find_source
from reprocessing.store.runs.enlistment import PlacedLetter, UnplacedLetter

_READ_FROM_BODIES = (SelectorSource.BODY, SelectorSource.CONTENT_HASH)


def policy_of(dlq: DeadLetterQueue) -> KeyPolicy:
    """Return how to read the keys of a letter, by the DLQ's current settings."""
    return KeyPolicy.of(
        fifo=dlq.fifo,
        ordering=dlq.ordering_key,
        sequence=dlq.sequence,
        idempotency=dlq.idempotency_key,
        missing_key=dlq.missing_key,
    )


def reads_bodies(policy: KeyPolicy) -> bool:
    """Return whether one of the keys is read from the letter's body."""
    selectors = (policy.ordering, policy.sequence, policy.idempotency)
    return any(selector.source in _READ_FROM_BODIES for selector in selectors)


def place_letter(policy: KeyPolicy, unplaced: UnplacedLetter) -> PlacedLetter:
    """Return a letter's place, why it cannot be sent, or both."""
    facts = LetterFacts(
        unplaced.message_id, bytes(unplaced.body), unpack_attributes(bytes(unplaced.attributes)), unplaced.system
    )  # fmt: skip
    if unplaced.source_id is None:
        detail = find_source.describe_source(facts.body, facts.attributes, facts.system)
        return PlacedLetter(unplaced.id, blocked_reason=ParkedReason.UNKNOWN_SOURCE, detail=detail)
    found = choose_place(policy, facts)
    match found:
        case Park(reason, detail):
            return PlacedLetter(unplaced.id, blocked_reason=reason, detail=detail)
        case LetterPlace():
            # No other letter can have a message id as its idempotency key, so such a key is not stored.
            key = found.idempotency_key if found.idempotency_key != unplaced.message_id else None
            against = _objection(unplaced)
            blocked_reason, detail = (against.reason, against.detail) if against else ("", "")
            return PlacedLetter(
                unplaced.id, blocked_reason, detail, found.key, found.key_hash, found.single, found.sequence, key
            )


def _objection(unplaced: UnplacedLetter) -> Park | None:
    if unplaced.size_limit is not None and unplaced.size > unplaced.size_limit:
        return Park(ParkedReason.TOO_LARGE, f"{unplaced.size:,} bytes; the target takes {unplaced.size_limit:,}")
    if unplaced.target_kind != TargetKind.CELERY:
        return None
    task = celery_task.read(bytes(unplaced.body))
    return celery_task.why_not_send(task, now=unplaced.asked_at, strips_expires=bool(unplaced.strips_expires))
