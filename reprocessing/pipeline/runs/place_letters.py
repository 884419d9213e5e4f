"""Compute a letter's place (ordering key, sequence, idempotency key), or why the letter cannot be sent."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from reprocessing.domain.lifecycle import ParkedReason
from reprocessing.domain.message.envelope import unpack_attributes
from reprocessing.domain.message.identity import LetterFacts, SelectorSource
from reprocessing.domain.ordering.placement import KeyPolicy, LetterPlace, StoredPlace, choose_place
from reprocessing.domain.replay.verdicts import Park
from reprocessing.domain.sources import celery_task
from reprocessing.domain.targets.target_kind import TargetKind
from reprocessing.models import DeadLetterQueue, Target
from reprocessing.pipeline.capture import find_source
from reprocessing.store.ordering.placement import UnplacedLetter

_READ_FROM_BODIES = (SelectorSource.BODY, SelectorSource.CONTENT_HASH)


def policy_of(dlq: DeadLetterQueue) -> KeyPolicy:
    """Return where in a letter its ordering key, sequence and idempotency key are, by the DLQ's current settings."""
    return KeyPolicy.of(
        fifo=dlq.fifo,
        ordering=dlq.ordering_key,
        sequence=dlq.sequence,
        idempotency=dlq.idempotency_key,
        missing_key=dlq.missing_key,
    )


def reads_bodies(policy: KeyPolicy) -> bool:
    """Return whether the body of a letter is needed for its ordering key, sequence or idempotency key."""
    selectors = (policy.ordering, policy.sequence, policy.idempotency)
    return any(selector.source in _READ_FROM_BODIES for selector in selectors)


def is_ordered(policy: KeyPolicy) -> bool:
    """Return whether letters have ordering keys, so that letters of one key are sent in order."""
    return policy.ordering.source is not SelectorSource.NONE


@dataclass(frozen=True, slots=True)
class TargetLimits:
    """What limits the letters that a target accepts. All fields are None if the letter has no target.

    `size_limit`: bytes. `kind`: the kind of target. `strips_expires`: whether expired Celery tasks can be sent.
    """

    size_limit: int | None
    kind: str | None
    strips_expires: bool | None


def limits_of(target: Target) -> TargetLimits:
    """Return what limits the letters that this target accepts."""
    return TargetLimits(target.size_limit, target.kind, target.strips_expires)


def place_letter(policy: KeyPolicy, unplaced: UnplacedLetter) -> StoredPlace:
    """Return the place of a letter, and why the letter cannot be sent. One of the two may be missing.

    The place is the letter's ordering key, sequence and idempotency key.
    """
    facts = LetterFacts(
        unplaced.message_id, bytes(unplaced.body), unpack_attributes(bytes(unplaced.attributes)), unplaced.system
    )  # fmt: skip
    if unplaced.source_id is None:
        detail = find_source.describe_source(facts.body, facts.attributes, facts.system)
        return StoredPlace(ParkedReason.UNKNOWN_SOURCE, detail)
    limits = TargetLimits(unplaced.size_limit, unplaced.target_kind, unplaced.strips_expires)
    return place(policy, facts, limits, size=unplaced.size, now=unplaced.asked_at)


def place(policy: KeyPolicy, facts: LetterFacts, limits: TargetLimits, *, size: int, now: datetime) -> StoredPlace:
    """Return the place of a letter whose source is known, and why it cannot be sent. One of the two may be missing.

    The place is its ordering key, sequence and idempotency key. `limits`: what the target accepts. `size`: bytes of the
    letter, with attributes. `now`: decides whether a Celery task has expired.
    """
    found = choose_place(policy, facts)
    match found:
        case Park(reason, detail):
            return StoredPlace(reason, detail)
        case LetterPlace():
            # A message id is not stored as the letter's idempotency key, since no other letter can have this key.
            key = found.idempotency_key if found.idempotency_key != facts.message_id else None
            against = _objection(facts.body, limits, size, now)
            blocked_reason, detail = (against.reason, against.detail) if against else ("", "")
            return StoredPlace(blocked_reason, detail, found.key, found.key_hash, found.single, found.sequence, key)


def _objection(body: bytes, limits: TargetLimits, size: int, now: datetime) -> Park | None:
    if limits.size_limit is not None and size > limits.size_limit:
        return Park(ParkedReason.TOO_LARGE, f"{size:,} bytes; the target takes {limits.size_limit:,}")
    if limits.kind != TargetKind.CELERY:
        return None
    return celery_task.why_not_send(celery_task.read(body), now=now, strips_expires=bool(limits.strips_expires))
