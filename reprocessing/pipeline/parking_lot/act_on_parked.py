"""The parking lot: what people decide about letters that wait for them, recorded with the deed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from uuid import uuid4

from reprocessing.domain.lifecycle import LetterState
from reprocessing.domain.message.envelope import unpack
from reprocessing.domain.ordering.placement import Policy
from reprocessing.models import DeadLetterQueue, Run
from reprocessing.models.audit import Act
from reprocessing.models.run import RunState
from reprocessing.pipeline.capture import find_source
from reprocessing.pipeline.runs import place_letters
from reprocessing.store import rows
from reprocessing.store.ordering import lanes
from reprocessing.store.parking_lot import assignment, decisions, restore_discarded
from reprocessing.store.parking_lot.decisions import Asked
from reprocessing.store.runs import enlistment, released_into_runs


@dataclass(frozen=True, slots=True)
class Reviewed:
    """What a review did: the letters it moved, and why it left the others alone, by letter id."""

    done: tuple[int, ...]
    refused: dict[int, str]


def release(  # noqa: PLR0913  # each by its name
    letters: Collection[int], *, by: str, reason: str, due: datetime | None = None, target: int | None = None,
    operation: int | None = None,
) -> Reviewed:  # fmt: skip
    """Put parked letters back onto their lanes, with as many attempts as their dlq allows anew.

    One that was parked because its place was not known gets its place by what the dlq says now, or else goes alone.
    A released letter goes though later ones of its lane were delivered, and though another body was under its key: a
    person said so. Where the same body was, it is closed as that letter's duplicate.

    Args:
        letters: ids.
        by: who decides.
        reason: why.
        due: not before then; what is behind it in its lane waits for it. None: as soon as it is its turn.
        target: the id of the target that it goes to, whatever rules say; None: where it would go.
        operation: what it is a part of.
    """
    put = partial(_release, by=by, reason=reason, due=due, target=target)
    return _review(letters, _Deed(Act.RELEASED, put, target=target), by, reason, operation)


def discard(letters: Collection[int], *, by: str, reason: str, operation: int | None = None) -> Reviewed:
    """Give up parked letters. Letters with the same idempotency key that turn up later are parked.

    Until they are forgotten, `restore` takes it back.
    """
    return _review(letters, _Deed(Act.DISCARDED, decisions.discard), by, reason, operation)


def restore(letters: Collection[int], *, by: str, reason: str, operation: int | None = None) -> Reviewed:
    """Park discarded letters again, for what they were parked for; what a rule discarded is quarantined."""
    return _review(letters, _Deed(Act.RESTORED, restore_discarded.restore), by, reason, operation)


def assign(  # noqa: PLR0913  # each by its name
    letters: Collection[int], *, to: str, by: str, reason: str, operation: int | None = None,
    seen_at: datetime | None = None,
) -> Reviewed:  # fmt: skip
    """Say who sees to parked letters, by user name; empty: nobody.

    Args:
        letters: ids.
        to: who.
        by: who decides.
        reason: why.
        operation: what it is a part of.
        seen_at: when it was seen whose they are; one that somebody else assigned later is left alone. None: just now.
    """

    def write(able: list[Asked]) -> None:
        ids = [letter.letter_id for letter in able]
        assignment.assign(ids, to=to, by=by, reason=reason, operation=operation)

    def look(able: list[Asked]) -> dict[int, str]:
        if seen_at is None:
            return {}
        ids = [letter.letter_id for letter in able]
        later = assignment.since(ids, since=seen_at, operation=operation)
        return {one.letter_id: f"{one.by} assigned it to {one.to or 'nobody'} since" for one in later}

    return _mark(letters, write, by, reason, look=look)


def note(letters: Collection[int], *, by: str, reason: str, operation: int | None = None) -> Reviewed:
    """Write down what somebody wants others to know of parked letters; nothing else changes."""

    def write(able: list[Asked]) -> None:
        decisions.record(able, Act.NOTED, was=LetterState.PARKED, by=by, reason=reason, operation=operation)

    return _mark(letters, write, by, reason)


@dataclass(frozen=True, slots=True)
class _Deed:
    """What moves letters; `do` moves them, and tells the lanes that it touched."""

    act: Act
    do: Callable[[list[int]], set[int]]
    target: int | None = None

    @property
    def moves_out_of(self) -> LetterState:
        """Where it finds them."""
        return LetterState.DISCARDED if self.act is Act.RESTORED else LetterState.PARKED


def _review(letters: Collection[int], deed: _Deed, by: str, reason: str, operation: int | None) -> Reviewed:
    _insist(by, reason)

    def decide() -> Reviewed:
        if deed.act is Act.RELEASED:
            _name(letters)
            _place(letters)
        was = deed.moves_out_of
        asked = decisions.lock(letters, need_lane=deed.act is Act.RELEASED, state=was, target=deed.target)
        able = [letter for letter in asked if not letter.refusal]
        if able:
            touched = sorted(deed.do([letter.letter_id for letter in able]))
            decisions.record(able, deed.act, was=was, by=by, reason=reason, operation=operation)
            if deed.act is Act.RELEASED:
                released_into_runs.record(
                    [letter.letter_id for letter in able], by=by, reason=reason, operation=operation
                )
            lanes.advance(touched, [None] * len(touched))
        return _reviewed(letters, asked)

    return rows.whole(decide)


_Write = Callable[[list[Asked]], None]
_Look = Callable[[list[Asked]], dict[int, str]]  # why some are left alone, by letter id


def _mark(letters: Collection[int], write: _Write, by: str, reason: str, look: _Look | None = None) -> Reviewed:
    """Letters that stay where they are."""
    _insist(by, reason)
    return rows.whole(partial(_marked, letters, write, look))


def _marked(letters: Collection[int], write: _Write, look: _Look | None) -> Reviewed:
    asked = decisions.lock(letters, need_lane=False)
    if look is not None:
        left = look([letter for letter in asked if not letter.refusal])
        asked = [replace(letter, refusal=left.get(letter.letter_id, letter.refusal)) for letter in asked]
    if able := [letter for letter in asked if not letter.refusal]:
        write(able)
    return _reviewed(letters, asked)


def _insist(by: str, reason: str) -> None:
    if not by.strip() or not reason.strip():
        raise ValueError("a review says who decided, and why")


def _reviewed(letters: Collection[int], asked: Sequence[Asked]) -> Reviewed:
    refused = {letter.letter_id: letter.refusal for letter in asked if letter.refusal}
    refused |= dict.fromkeys(set(letters) - {letter.letter_id for letter in asked}, "there is no such letter")
    return Reviewed(tuple(letter.letter_id for letter in asked if not letter.refusal), refused)


def _name(letters: Collection[int]) -> None:
    """Letters whose origin was not known get the one that was named since, by the rules of a capture."""
    origins: dict[int, find_source.Origins] = {}
    for some in decisions.nameless(letters):
        unknown = {one.dlq_id for one in some} - origins.keys()
        origins |= {dlq.pk: find_source.Origins(dlq) for dlq in DeadLetterQueue.objects.filter(pk__in=unknown)}
        traced = {
            one.id: origins[one.dlq_id].of(bytes(one.body), unpack(bytes(one.attributes)), one.system) for one in some
        }
        enlistment.name({pk: origin.pk for pk, origin in traced.items() if origin is not None})


def _place(letters: Collection[int]) -> None:
    """Letters that were parked for want of a place get one, where their dlq says by now where their keys are."""
    policies: dict[int, Policy] = {}
    for some in enlistment.strays(letters):
        unknown = {one.dlq_id for one in some} - policies.keys()
        policies |= {dlq.pk: place_letters.policy_of(dlq) for dlq in DeadLetterQueue.objects.filter(pk__in=unknown)}
        placed = [place_letters.letter(policies[one.dlq_id], one) for one in some]
        # What else speaks against one, a person has overruled.
        known = [replace(place, objection="", detail="") for place in placed if place.key_hash is not None]
        enlistment.place(known, state=LetterState.PARKED)


def _release(letters: list[int], *, by: str, reason: str, due: datetime | None, target: int | None) -> set[int]:
    """Back to their lanes; where their dlq has no running run, one is begun for them."""
    for dlq in decisions.without_run(letters):
        name = f"release-{uuid4().hex[:12]}"
        Run.objects.create(
            name=name,
            dlq_id=dlq,
            state=RunState.RUNNING,
            asked_by=by,
            reason=reason,
            started_at=lanes.clock(),
            selection={"released": True},
        )
    return decisions.release(letters, by=by, due=due, target=target)
