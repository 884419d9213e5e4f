"""Give captured letters their places, and enlist whole lanes into a run once the capture has drained."""

from __future__ import annotations

from reprocessing.domain.envelope import unpack
from reprocessing.domain.identity import LetterFacts, Source
from reprocessing.domain.lane import Place, Policy, place
from reprocessing.domain.lifecycle import ParkedReason
from reprocessing.domain.verdict import Park
from reprocessing.models import DeadLetterQueue, Run, enlistment, rows
from reprocessing.models.enlistment import Enlisted, Placed, Unplaced


def places(dlq: DeadLetterQueue) -> int:
    """Compute ordering key, sequence and idempotency key of letters that lack them; how many got one or an objection.

    Letters stay captured: an objection becomes a parking reason only when a run takes them.
    """
    policy = Policy.of(
        fifo=dlq.fifo,
        ordering=dlq.ordering_key,
        sequence=dlq.sequence,
        idempotency=dlq.idempotency_key,
        missing_key=dlq.missing_key,
    )
    bodies = any(one.source in _READ_FROM_BODIES for one in (policy.ordering, policy.sequence, policy.idempotency))
    done = 0
    while found := enlistment.unplaced(dlq.pk, bodies=bodies):
        enlistment.place([_placed(policy, one) for one in found])
        done += len(found)
    return done


_READ_FROM_BODIES = (Source.BODY, Source.CONTENT_HASH)


def enlist(dlq: DeadLetterQueue, run: Run, *, limit: int | None = None) -> Enlisted:
    """Put the dlq's placed letters that are in no run onto their lanes, as the run's, in one transaction."""
    return rows.whole(lambda: enlistment.enlist(dlq.pk, run.pk, limit=limit))


def _placed(policy: Policy, one: Unplaced) -> Placed:
    if one.origin_id is None:
        return Placed(one.id, objection=ParkedReason.UNKNOWN_ORIGIN)
    facts = LetterFacts(one.message_id, bytes(one.body), unpack(bytes(one.attributes)), one.system)
    found = place(policy, facts)
    match found:
        case Park(reason, detail):
            return Placed(one.id, objection=reason, detail=detail)
        case Place():
            # A key that is the message id can have no twin: it needs no claim.
            key = found.idempotency_key if found.idempotency_key != one.message_id else None
            objection, detail = _too_large(one)
            return Placed(one.id, objection, detail, found.key, found.key_hash, found.single, found.sequence, key)


def _too_large(one: Unplaced) -> tuple[str, str]:
    if one.size_limit is not None and one.size > one.size_limit:
        return ParkedReason.TOO_LARGE, f"{one.size:,} bytes; its target takes {one.size_limit:,}"
    return "", ""
