"""The parking lot: what people decide about letters that wait for them, recorded with the deed."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from uuid import uuid4

from reprocessing.domain.envelope import unpack
from reprocessing.domain.lifecycle import LetterState
from reprocessing.models import DeadLetterQueue, Run, enlistment, lanes, parking, rows
from reprocessing.models.review import Act
from reprocessing.models.run import RunState
from reprocessing.pipeline import place, trace


@dataclass(frozen=True, slots=True)
class Reviewed:
    """What a review did: the letters it moved, and why it left the others alone, by letter id."""

    done: tuple[int, ...]
    refused: dict[int, str]


def release(letters: Collection[int], *, by: str, reason: str) -> Reviewed:
    """Put parked letters back onto their lanes, due at once, with as many attempts as their dlq allows anew.

    One that was parked because its place was not known gets its place by what the dlq says now, or else goes alone.
    A released letter goes though later ones of its lane were delivered, and though another body was under its key: a
    person said so. Where the same body was, it is closed as that letter's duplicate.

    Args:
        letters: ids.
        by: who decides.
        reason: why.
    """
    return _review(letters, Act.RELEASED, by, reason)


def discard(letters: Collection[int], *, by: str, reason: str) -> Reviewed:
    """Give up parked letters. Letters with the same idempotency key that turn up later are parked."""
    return _review(letters, Act.DISCARDED, by, reason)


def _review(letters: Collection[int], act: Act, by: str, reason: str) -> Reviewed:
    if not by.strip() or not reason.strip():
        raise ValueError("a review says who decided, and why")

    def decide() -> Reviewed:
        if act is Act.RELEASED:
            _name(letters)
            _place(letters)
        asked = parking.lock(letters, need_lane=act is Act.RELEASED)
        refused = {one.letter_id: one.refusal for one in asked if one.refusal}
        refused |= dict.fromkeys(set(letters) - {one.letter_id for one in asked}, "there is no such letter")
        able = [one.letter_id for one in asked if not one.refusal]
        if able:
            touched = _release(able, by) if act is Act.RELEASED else parking.discard(able)
            parking.record(able, act, by=by, reason=reason)
            ids = sorted(touched)
            lanes.advance(ids, [None] * len(ids))
        return Reviewed(tuple(able), refused)

    return rows.whole(decide)


def _name(letters: Collection[int]) -> None:
    """Letters whose origin was not known get the one that was named since, by the rules of a capture."""
    origins: dict[int, trace.Origins] = {}
    for some in parking.nameless(letters):
        unknown = {one.dlq_id for one in some} - origins.keys()
        origins |= {dlq.pk: trace.Origins(dlq) for dlq in DeadLetterQueue.objects.filter(pk__in=unknown)}
        traced = {
            one.id: origins[one.dlq_id].of(bytes(one.body), unpack(bytes(one.attributes)), one.system) for one in some
        }
        enlistment.name({pk: origin.pk for pk, origin in traced.items() if origin is not None})


def _place(letters: Collection[int]) -> None:
    """Letters that were parked for want of a place get one, where their dlq says by now where their keys are."""
    found = enlistment.strays(letters)
    policies = {
        dlq.pk: place.policy_of(dlq) for dlq in DeadLetterQueue.objects.filter(pk__in={one.dlq_id for one in found})
    }
    placed = [place.letter(policies[one.dlq_id], one) for one in found]
    # What else speaks against one, a person has overruled.
    known = [replace(one, objection="", detail="") for one in placed if one.key_hash is not None]
    enlistment.place(known, state=LetterState.PARKED)


def _release(letters: list[int], by: str) -> set[int]:
    """Back to their lanes; where their dlq has no running run, one is begun for them."""
    for dlq in parking.without_run(letters):
        name = f"release-{uuid4().hex[:12]}"
        Run.objects.create(
            name=name,
            dlq_id=dlq,
            state=RunState.RUNNING,
            asked_by=by,
            started_at=lanes.clock(),
            selection={"released": True},
        )
    return parking.release(letters, by=by)
