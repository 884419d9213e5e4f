"""Release, discard, restore, assign or annotate letters for a person. The same transaction writes the audit log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any, Final
from uuid import uuid4

from reprocessing.domain.approvals.requested_action import ActionKind, ApprovalNeeded, RequestedAction
from reprocessing.domain.lifecycle import LetterState
from reprocessing.domain.ordering.placement import KeyPolicy
from reprocessing.models import DeadLetterQueue, Letter, Run
from reprocessing.models.audit import AuditAct
from reprocessing.models.run import RunState
from reprocessing.pipeline.capture import find_source
from reprocessing.pipeline.runs import place_letters
from reprocessing.store import rows
from reprocessing.store.approvals import guard
from reprocessing.store.ordering import lane_state, lanes, placement
from reprocessing.store.parking_lot import assignment, decisions, restore_discarded
from reprocessing.store.parking_lot.decisions import LockedLetter
from reprocessing.store.runs import released_into_runs

#: The kind and title of the `RequestedAction`, by decision that may need a second person. Other decisions need none.
_ACTIONS: Final = {
    AuditAct.RELEASED: (ActionKind.RELEASE, "Release parked messages"),
    AuditAct.DISCARDED: (ActionKind.DISCARD, "Discard parked messages"),
    AuditAct.RESTORED: (ActionKind.RESTORE, "Restore discarded messages to the parking lot"),
}


@dataclass(frozen=True, slots=True)
class Reviewed:
    """The result of a change of letters.

    `done`: ids of the changed letters. `refused`: why other letters were not changed, by letter id.
    """

    done: tuple[int, ...]
    refused: dict[int, str]


def release(  # noqa: PLR0913  # arguments are passed by name
    letters: Collection[int], *, by: str, reason: str, due: datetime | None = None, target: int | None = None,
    operation: int | None = None, approval: int | None = None, is_part: bool = False,
) -> Reviewed:  # fmt: skip
    """Put parked letters back onto their lanes, with as many attempts as their DLQ allows; return the result.

    A letter without a place in a lane is placed by the DLQ's current settings. If these settings find no key in the
    letter, it is sent without ordering. A released letter is sent even if later letters of its lane were delivered. If
    a letter with the same idempotency key and the same body was delivered, the released letter becomes a duplicate.

    Args:
        letters: ids of parked letters.
        by: who releases them.
        reason: why.
        due: earliest time of the send; later letters of the lane wait.
        target: id of the target to send to, instead of the target that rules and settings decide; None: they decide.
        operation: id of the bulk action that releases them; None: no bulk action. A bulk action is approved as a whole.
        approval: id of the approval that is being executed; None: the person acts alone.
        is_part: the release is a part of an edit, for which the need of a second person was checked already.

    Raises:
        ApprovalNeeded: a second person is needed.
    """
    put = partial(_release, by=by, reason=reason, due=due, target=target)
    options = {"due": due and due.isoformat(), "target": target}
    return _review(
        letters, AuditAct.RELEASED, put, by=by, reason=reason, operation=operation, target=target, options=options,
        approval=approval, is_part=is_part,
    )  # fmt: skip


def discard(
    letters: Collection[int], *, by: str, reason: str, operation: int | None = None, approval: int | None = None
) -> Reviewed:
    """Discard parked letters, so that they are not sent any more; return the result. `restore` undoes this.

    Other letters with the same idempotency key are parked when they are due. `operation`: id of the bulk action that
    discards them; None: no bulk action. `approval`: id of the approval that is being executed; None: the person acts
    alone.

    Raises:
        ApprovalNeeded: a second person is needed.
    """
    put = decisions.discard_letters
    return _review(
        letters, AuditAct.DISCARDED, put, by=by, reason=reason, operation=operation, approval=approval
    )  # fmt: skip


def restore(
    letters: Collection[int], *, by: str, reason: str, operation: int | None = None, approval: int | None = None
) -> Reviewed:
    """Park discarded letters again, for their former reason; return the result.

    Letters that a rule discarded are parked as `quarantined`. `operation`: id of the bulk action that restores them;
    None: no bulk action. `approval`: id of the approval that is being executed; None: the person acts alone.

    Raises:
        ApprovalNeeded: a second person is needed.
    """
    put = restore_discarded.restore_letters
    return _review(
        letters, AuditAct.RESTORED, put, by=by, reason=reason, operation=operation, approval=approval
    )  # fmt: skip


def check_whole(act: AuditAct, letters: Collection[int], *, by: str, **options: Any) -> None:  # noqa: ANN401  JSON values
    """Check that one person may change all these letters without a second person.

    Call this function before the letters are changed in several transactions, since each transaction alone may change
    fewer letters than the limit for one person.

    Raises:
        ApprovalNeeded: a second person is needed.
    """
    found = Letter.objects.filter(pk__in=list(letters)).values_list("dlq_id", flat=True)
    messages = Counter(found)
    if guard.is_needed(messages, by=by):
        raise ApprovalNeeded(_action(act, letters, options), messages)


def assign(  # noqa: PLR0913  # arguments are passed by name
    letters: Collection[int], *, to: str, by: str, reason: str, operation: int | None = None,
    seen_at: datetime | None = None,
) -> Reviewed:  # fmt: skip
    """Assign parked letters to the user `to` (empty: to nobody); return the result.

    `seen_at`: when the person saw the letters. Letters that somebody assigned after this time are refused.
    """

    def write(able: list[LockedLetter]) -> None:
        ids = [letter.letter_id for letter in able]
        assignment.assign_letters(ids, to=to, by=by, reason=reason, operation=operation)

    def look(able: list[LockedLetter]) -> dict[int, str]:
        if seen_at is None:
            return {}
        ids = [letter.letter_id for letter in able]
        later = assignment.assigned_since(ids, since=seen_at, operation=operation)
        return {found.letter_id: f"{found.by} assigned it to {found.to or 'nobody'} since" for found in later}

    return _mark(letters, write, by, reason, look=look)


def note(letters: Collection[int], *, by: str, reason: str, operation: int | None = None) -> Reviewed:
    """Record a note (`reason`) on parked letters, which stay parked; return the result."""

    def write(able: list[LockedLetter]) -> None:
        decisions.record_decisions(
            able, AuditAct.NOTED, was=LetterState.PARKED, by=by, reason=reason, operation=operation
        )

    return _mark(letters, write, by, reason)


def _review(  # noqa: PLR0913  # arguments are passed by name
    letters: Collection[int], act: AuditAct, do: Callable[[list[int]], set[int]], *, by: str, reason: str,
    operation: int | None, approval: int | None, target: int | None = None, options: Mapping[str, Any] | None = None,
    is_part: bool = False,
) -> Reviewed:  # fmt: skip
    """Lock and check letters, change them, and write the audit log, in one transaction.

    `do`: changes the letters with these ids, and returns the ids of their lanes.
    """
    _insist(by, reason)
    releases = act is AuditAct.RELEASED
    was = LetterState.DISCARDED if act is AuditAct.RESTORED else LetterState.PARKED

    def decide() -> Reviewed:
        readable = (_set_sources(letters) | _place(letters)) if releases else set[int]()
        asked = decisions.lock_letters(letters, need_lane=releases, state=was, target=target, readable=readable)
        able = [letter for letter in asked if not letter.refusal]
        if able and operation is None and not is_part:
            action = _action(act, [letter.letter_id for letter in able], options or {})
            guard.check(action, Counter(letter.dlq_id for letter in able), by=by, approval=approval)
        if able:
            touched = sorted(do([letter.letter_id for letter in able]))
            decisions.record_decisions(able, act, was=was, by=by, reason=reason, operation=operation)
            if releases:
                runs = {letter.letter_id: letter.run_id for letter in able}
                released_into_runs.record_release(runs, by=by, reason=reason, operation=operation)
            lane_state.advance(touched, [None] * len(touched))
        return _reviewed(letters, asked)

    return rows.in_transaction(decide)


def _action(act: AuditAct, letters: Collection[int], options: Mapping[str, Any]) -> RequestedAction:
    kind, title = _ACTIONS[act]
    said = {name: value for name, value in options.items() if value is not None}
    return RequestedAction(kind, title, said, tuple(sorted(letters)))


def _mark(
    letters: Collection[int], write: Callable[[list[LockedLetter]], None], by: str, reason: str,
    look: Callable[[list[LockedLetter]], dict[int, str]] = lambda _: {},
) -> Reviewed:  # fmt: skip
    """Lock parked letters, and write a note or an assignee for them. The letters stay parked.

    `write`: writes the note or assignee. `look`: returns why a letter must not be changed, by letter id.
    """
    _insist(by, reason)

    def work() -> Reviewed:
        asked = decisions.lock_letters(letters, need_lane=False)
        left = look([letter for letter in asked if not letter.refusal])
        asked = [replace(letter, refusal=left.get(letter.letter_id, letter.refusal)) for letter in asked]
        if able := [letter for letter in asked if not letter.refusal]:
            write(able)
        return _reviewed(letters, asked)

    return rows.in_transaction(work)


def _insist(by: str, reason: str) -> None:
    if not by.strip() or not reason.strip():
        raise ValueError("by and reason must not be empty")


def _reviewed(letters: Collection[int], asked: Sequence[LockedLetter]) -> Reviewed:
    refused = {letter.letter_id: letter.refusal for letter in asked if letter.refusal}
    refused |= dict.fromkeys(set(letters) - {letter.letter_id for letter in asked}, "there is no such letter")
    return Reviewed(tuple(letter.letter_id for letter in asked if not letter.refusal), refused)


def _set_sources(letters: Collection[int]) -> set[int]:
    """Set the source of letters without a source, if their source was registered after their capture.

    This needs the letters' content. Return the ids of the letters that could be decrypted.
    """
    readable = set[int]()
    for some in placement.letters_without_source(letters):
        readable.update(letter.id for letter in some)
        for dlq in DeadLetterQueue.objects.filter(pk__in={letter.dlq_id for letter in some}):
            sources = find_source.Sources(dlq)
            placement.set_sources(sources.trace(letter for letter in some if letter.dlq_id == dlq.pk))
    return readable


def _place(letters: Collection[int]) -> set[int]:
    """Give letters that were parked without a place a place in a lane, if the DLQ's current settings find their keys.

    This needs the letters' content. Return the ids of the letters that could be decrypted.
    """
    policies, readable = dict[int, KeyPolicy](), set[int]()
    for some in placement.unplaced_parked_letters(letters):
        readable.update(letter.id for letter in some)
        unknown = {letter.dlq_id for letter in some} - policies.keys()
        policies |= {dlq.pk: place_letters.policy_of(dlq) for dlq in DeadLetterQueue.objects.filter(pk__in=unknown)}
        placed = {letter.id: place_letters.place_letter(policies[letter.dlq_id], letter) for letter in some}
        # The person who releases the letters overrules other objections.
        known = {
            letter: replace(place, blocked_reason="", detail="")
            for letter, place in placed.items()
            if place.key_hash is not None
        }
        placement.set_places(known, state=LetterState.PARKED)
    return readable


def _release(letters: list[int], *, by: str, reason: str, due: datetime | None, target: int | None) -> set[int]:
    """Put letters back onto their lanes; return the ids of the lanes. Start a run for each DLQ that has no open run."""
    for dlq in decisions.dlqs_without_run(letters):
        Run.objects.create(
            name=f"release-{uuid4().hex[:12]}", dlq_id=dlq, state=RunState.RUNNING, asked_by=by, reason=reason,
            started_at=lanes.database_now(), selection={"released": True},
        )  # fmt: skip
    return decisions.release_letters(letters, by=by, due=due, target=target)
