"""Release, discard, restore, assign and annotate some messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from django.http import HttpRequest
from ninja import Router

from reprocessing.api.approvals.approval_answers import ApprovalNeededAnswer
from reprocessing.api.parking_lot.decision_answers import (
    Assignment,
    Decision,
    DecisionAnswer,
    RefusedMessage,
    Release,
    require_assignee,
    require_future,
)
from reprocessing.api.site.caller import Caller, caller_of
from reprocessing.api.site.document import changes
from reprocessing.api.site.guard import acts, store_with_change
from reprocessing.api.site.problems import conflict
from reprocessing.domain.api.scopes import Scope
from reprocessing.domain.lifecycle import LetterState
from reprocessing.domain.parking_lot.selection_mark import selection_mark
from reprocessing.models import DeadLetterQueue, Letter
from reprocessing.pipeline.parking_lot import act_on_parked, release_target
from reprocessing.pipeline.parking_lot.act_on_parked import Reviewed
from reprocessing.store import rows
from reprocessing.store.parking_lot import decisions
from reprocessing.store.safety import stops

router: Final = Router()
_ANSWERS: Final = {200: DecisionAnswer, 202: ApprovalNeededAnswer}
_TAG: Final = "Decisions"
_MISSING: Final = "there is no such message, or this token does not see it"
_ADD_TARGET: Final = "Add the target in the admin, or send the name of another target."

Act = Callable[[list[int]], Reviewed]


@dataclass(frozen=True, slots=True)
class _Chosen:
    """A message that can be changed: its letter id (`id`), and since when it is in its state (`since`)."""

    id: int
    since: datetime


@changes(router, "/messages/release", Scope.MESSAGES_RELEASE, _ANSWERS, tag=_TAG)
def release_messages(request: HttpRequest, decision: Release) -> DecisionAnswer:
    """Release parked messages.

    The messages return to their key queues and are sent again. Each gets as many new attempts as its DLQ allows.
    """
    caller = caller_of(request)
    require_future(decision.at)
    target = None
    if decision.target is not None:
        target = release_target.find_target(decision.target, seen=caller.seen, cure=_ADD_TARGET).pk

    def act(letters: list[int]) -> Reviewed:
        return act_on_parked.release(letters, by=caller.by, reason=decision.reason, due=decision.at, target=target)

    return _decide(request, decision, LetterState.PARKED, act, "released", target=target)


@changes(router, "/messages/discard", Scope.MESSAGES_DISCARD, _ANSWERS, tag=_TAG)
def discard_messages(request: HttpRequest, decision: Decision) -> DecisionAnswer:
    """Discard parked messages.

    The messages are not sent any more. POST /messages/restore returns them to the parking lot.
    """

    def act(letters: list[int]) -> Reviewed:
        return act_on_parked.discard(letters, by=caller_of(request).by, reason=decision.reason)

    return _decide(request, decision, LetterState.PARKED, act, "discarded")


@changes(router, "/messages/restore", Scope.MESSAGES_DISCARD, _ANSWERS, tag=_TAG)
def restore_messages(request: HttpRequest, decision: Decision) -> DecisionAnswer:
    """Restore discarded messages to the parking lot."""

    def act(letters: list[int]) -> Reviewed:
        return act_on_parked.restore(letters, by=caller_of(request).by, reason=decision.reason)

    return _decide(request, decision, LetterState.DISCARDED, act, "restored to the parking lot")


@changes(router, "/messages/assign", Scope.MESSAGES_ASSIGN, DecisionAnswer, tag=_TAG)
def assign_messages(request: HttpRequest, decision: Assignment) -> DecisionAnswer:
    """Assign parked messages to a person, or to nobody."""
    require_assignee(decision.to)

    def act(letters: list[int]) -> Reviewed:
        return act_on_parked.assign(letters, to=decision.to, by=caller_of(request).by, reason=decision.reason)

    done = f"assigned to {decision.to or 'nobody'}"
    return _decide(request, decision, LetterState.PARKED, act, done, is_guarded=False)


@changes(router, "/messages/note", Scope.MESSAGES_ASSIGN, DecisionAnswer, tag=_TAG)
def note_messages(request: HttpRequest, decision: Decision) -> DecisionAnswer:
    """Add a note to parked messages.

    The text of the note is `reason`.
    """

    def act(letters: list[int]) -> Reviewed:
        return act_on_parked.note(letters, by=caller_of(request).by, reason=decision.reason)

    return _decide(request, decision, LetterState.PARKED, act, "noted", is_guarded=False)


def _decide(  # noqa: PLR0913  # each of another kind
    request: HttpRequest, decision: Decision, state: LetterState, act: Act, done: str, *, target: int | None = None,
    is_guarded: bool = True,
) -> DecisionAnswer:  # fmt: skip
    """Change the messages in one transaction, which locks them. In a dry run, change nothing. Return the answer.

    `act`: the function that changes the letters with these ids. `done`: the word for the change, such as "discarded".
    `target`: where the messages are sent; None: rules and settings decide. `is_guarded`: whether the change may need a
    second person.
    """
    asked = list(dict.fromkeys(decision.redrive_ids))
    known = _visible(caller_of(request), asked)
    confirmed = acts(request, confirm=decision.confirm)

    def work() -> DecisionAnswer:
        needs_lane = state is LetterState.PARKED and not confirmed and target is not None
        locked = decisions.lock_letters(list(known), need_lane=needs_lane, state=state, target=target)
        able = [letter.letter_id for letter in locked if not letter.refusal]
        mark = selection_mark(_chosen(able))
        if decision.selection not in {None, mark}:
            raise conflict("Some of the messages changed since the dry run. Send the dry run again.")
        if confirmed:
            answer = told(mark, act(list(known)))
            store_with_change(request, answer)
            return answer
        refused = {letter.letter_id: letter.refusal for letter in locked if letter.refusal}
        return told(mark, Reviewed(tuple(able), refused))

    def told(mark: str, reviewed: Reviewed) -> DecisionAnswer:
        refused = [RefusedMessage(redrive_id=known[letter], why=why) for letter, why in reviewed.refused.items()]
        refused += [RefusedMessage(redrive_id=key, why=_MISSING) for key in asked if key not in set(known.values())]
        return DecisionAnswer(
            dry_run=not confirmed, changed=confirmed and bool(reviewed.done), selection=mark,
            says=_says(caller_of(request), reviewed, done, is_guarded=is_guarded, confirmed=confirmed),
            messages=len(reviewed.done), done=[known[letter] for letter in reviewed.done] if confirmed else [],
            refused=refused,
        )  # fmt: skip

    return rows.in_transaction(work)


def _says(caller: Caller, reviewed: Reviewed, done: str, *, is_guarded: bool, confirmed: bool) -> list[str]:
    """Return the sentences of the answer: stops of these DLQs, and what was done or, in a dry run, would be done."""
    n = len(reviewed.done)
    sentences = [f"{n:,} message{'' if n == 1 else 's'} {'' if confirmed else 'would be '}{done}."]
    if is_guarded and not confirmed:
        about = Letter.objects.filter(pk__in=reviewed.done).values_list("dlq_id", flat=True)
        sentences += caller.approval_notice(Counter(about))
    return [*_stopped(reviewed.done, done), *sentences]


def _visible(caller: Caller, asked: Sequence[UUID]) -> dict[int, UUID]:
    found = caller.rows(Letter.objects.filter(public_id__in=asked)).order_by("pk")
    return dict(found.values_list("pk", "public_id"))


def _chosen(letters: Sequence[int]) -> list[_Chosen]:
    found = Letter.objects.filter(pk__in=letters, finished_at__isnull=False).values_list("pk", "finished_at")
    return [_Chosen(key, since) for key, since in found if since is not None]


def _stopped(letters: Sequence[int], done: str) -> list[str]:
    """If the messages were released, return a sentence for each stop that keeps them from being sent."""
    if done != "released" or not letters:
        return []
    dlqs = DeadLetterQueue.objects.filter(letters__in=letters).distinct().order_by("name")
    return [why for why in dict.fromkeys(stops.describe_stop(dlq) for dlq in dlqs) if why]
