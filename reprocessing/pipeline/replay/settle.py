"""Record what became of attempts: close them, move their letters, and find each lane's next head."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import assert_never

from reprocessing.domain.lifecycle import AttemptOutcome, LetterState, ParkedReason
from reprocessing.domain.replay.verdicts import NotSent, Outcome, Refused, Taken, Unknown
from reprocessing.models import DeadLetterQueue, Target
from reprocessing.models.target import FORTNIGHT, Advance, Proof
from reprocessing.store import rows
from reprocessing.store.ordering import lanes
from reprocessing.store.ordering.lanes import Standing
from reprocessing.store.replay.intent import Intended
from reprocessing.store.replay.settlement import (
    PUT_OFF,
    Closing,
    Deletable,
    Fate,
    are_back,
    close,
    keep_evidence,
    put_off,
    settle,
)
from reprocessing.store.routing import routing_decisions
from reprocessing.store.safety.spared_attempts import spare_late

Dice = Callable[[], float]

_SWALLOWED = Refused("Swallowed", "for a copy that had come back already")
#: Seconds that a letter rests at most after an attempt that never left: SQS is out of reach, say.
UNSENT_CAP = 60.0


@dataclass(frozen=True, slots=True)
class Settled:
    """What a settlement leaves: the lanes with their next heads, and copies that may be deleted from their dlqs.

    `closed`: heads that it closed without their having been sent.
    """

    standings: list[Standing]
    deletable: list[Deletable]
    closed: tuple[Closing, ...] = ()


def attempts(  # noqa: PLR0913  # each by its name
    intended: Sequence[Intended],
    outcomes: Mapping[int, Outcome],
    *,
    targets: Mapping[int, Target],
    dlqs: Mapping[int, DeadLetterQueue],
    dice: Dice,
    lease: float,
    keep: bool = True,
) -> Settled:
    """Record the outcomes of attempts of lanes that are the caller's; lanes lost meanwhile only get their evidence.

    An attempt without an outcome is recorded as unknown. Lanes whose next head is due stay the caller's, for `lease`
    seconds more, unless `keep` says that it has no use for them.
    """
    fates = {
        one.attempt_id: _fate(
            one, outcomes.get(one.attempt_id, Unknown("nothing was reported of it")), targets, dlqs, dice
        )
        for one in intended
    }
    ordered = sorted(intended, key=lambda one: (one.dlq_id, one.message_id))  # the order in which copies are locked

    def record() -> Settled:
        mine = lanes.lock([one.lane_id for one in ordered], [one.fence for one in ordered])
        ours = [one for one in ordered if one.lane_id in mine]
        lost = [fates[one.attempt_id] for one in ordered if one.lane_id not in mine]
        if lost:
            keep_evidence([fate.attempt_id for fate in lost], [fate.sent_message_id for fate in lost])
        if not ours:
            return Settled([], [])
        final = _after_returns(ours, fates, outcomes, dlqs, dice)
        deletable = settle(final)
        spare_late([fate.attempt_id for fate in final if fate.ill and fate.counted])
        return Settled(_next(ours, outcomes, lease, keep=keep), deletable)

    return rows.whole(record)


def _next(ours: Sequence[Intended], outcomes: Mapping[int, Outcome], lease: float, *, keep: bool) -> list[Standing]:
    return lanes.advance(
        [one.lane_id for one in ours],
        [one.fence for one in ours],
        passed=[one.sequence if _has_passed(outcomes.get(one.attempt_id)) else None for one in ours],
        keep=keep,
        lease=lease,
    )


def _after_returns(
    ours: Sequence[Intended],
    fates: Mapping[int, Fate],
    outcomes: Mapping[int, Outcome],
    dlqs: Mapping[int, DeadLetterQueue],
    dice: Dice,
) -> list[Fate]:
    """The fates, except where the target swallowed a resend of a copy that has come back: both failed, for sure."""
    taken = {
        one.attempt_id: outcome.message_id
        for one in ours
        if isinstance(outcome := outcomes.get(one.attempt_id), Taken) and outcome.message_id and one.no > 1
    }
    back = are_back(taken) if taken else set()
    return [
        replace(
            _failed(replace(one, unsure=False), _SWALLOWED, dlqs[one.dlq_id], dice, None),
            outcome=AttemptOutcome.RETURNED,
            sent_message_id=taken[one.attempt_id],
            taken=True,
        )
        if one.attempt_id in back
        else fates[one.attempt_id]
        for one in ours
    ]


def heads(closings: Mapping[tuple[int, int], Closing], *, lease: float) -> Settled:
    """Close heads that are not to be sent; the lanes, named with their fences, are the caller's.

    One of which a copy may come back yet rests until it cannot, and its lane with it: the caller decides anew then.
    """

    def record() -> Settled:
        mine = lanes.lock([lane for lane, _ in closings], [fence for _, fence in closings])
        ours = {lane: closing for lane, closing in closings.items() if lane[0] in mine}
        later = put_off([closing.letter_id for closing in ours.values()])
        closed = tuple(closing for closing in ours.values() if closing.letter_id not in later)
        deletable = close(closed)
        standings = lanes.advance([lane for lane, _ in ours], [fence for _, fence in ours], keep=True, lease=lease)
        if later:
            routing_decisions.note({lane: PUT_OFF for (lane, _), closing in ours.items() if closing.letter_id in later})
        return Settled(standings, deletable, closed)

    return rows.whole(record)


def _has_passed(outcome: Outcome | None) -> bool:
    return outcome is None or isinstance(outcome, Taken | Unknown)


def _fate(
    one: Intended,
    outcome: Outcome,
    targets: Mapping[int, Target],
    dlqs: Mapping[int, DeadLetterQueue],
    dice: Dice,
) -> Fate:
    match outcome:
        case Taken(message_id):
            return _taken(one, message_id, targets[one.target_id])
        case NotSent():
            return Fate(
                one.attempt_id, one.letter_id, AttemptOutcome.NOT_SENT, LetterState.WAITING,
                "held" if one.unsure else "free",
                due=max(rest_unsent(one.not_sent), _asked(outcome.after)), detail=outcome.why, counted=False,
                ill=outcome.unreachable or None,
            )  # fmt: skip
        case Unknown() | Refused():
            return _failed(one, outcome, dlqs[one.dlq_id], dice, targets[one.target_id])
        case _ as never:
            assert_never(never)


def rest_unsent(before: int) -> float:
    """Seconds until a letter that never left is tried again: none after a first time, a minute when nothing leaves."""
    return min(UNSENT_CAP, 2.0 ** min(before, 10) - 1.0)


def _asked(after: timedelta | None) -> float:
    """The seconds that a target asked not to be tried for, within reason."""
    return 0.0 if after is None else min(max(0.0, after.total_seconds()), FORTNIGHT)


def _taken(one: Intended, message_id: str | None, target: Target) -> Fate:
    if target.proof == Proof.ACCEPTED:
        return Fate(
            one.attempt_id, one.letter_id, AttemptOutcome.ACCEPTED, LetterState.DELIVERED, "delivered",
            sent_message_id=message_id, taken=True, ill=False,
        )  # fmt: skip
    return Fate(
        one.attempt_id, one.letter_id, None, LetterState.AWAITING, "held",
        sent_message_id=message_id, taken=True, deadline=target.window, lets_pass=target.advance == Advance.ACCEPTED,
    )  # fmt: skip


def _failed(one: Intended, failure: Unknown | Refused, dlq: DeadLetterQueue, dice: Dice, target: Target | None) -> Fate:
    """Due again after its backoff, or parked: at once when no other attempt could end otherwise, else when spent.

    After an unknown outcome the claim stays held, and the epoch as it is: perhaps the target has the letter. So it is
    after a known one, where an earlier attempt's is unknown. When that was the last attempt, the letter is parked, its
    copy on its way: the key is held for as long as that may be in the target, and so is the lane, where it waits.
    """
    known = isinstance(failure, Refused) and not one.unsure
    outcome = AttemptOutcome.REFUSED if isinstance(failure, Refused) else AttemptOutcome.UNKNOWN
    detail = f"{failure.code}: {failure.message}"[:500] if isinstance(failure, Refused) else failure.why
    reason = (failure.reason or ParkedReason.REFUSED) if isinstance(failure, Refused) and failure.poison else None
    ill = True if reason is None else None  # a target that looks into letters is alive
    if reason is None and one.attempts >= dlq.max_attempts and not one.standing:  # else the gate decides, with others
        reason = ParkedReason.ATTEMPTS_SPENT
    if reason is not None and not known and target is not None and target.outlasts:
        return Fate(
            one.attempt_id, one.letter_id, None, LetterState.PARKED, "held",
            deadline=target.window, detail=detail, reason=reason, ill=ill,
        )  # fmt: skip
    if reason is not None:
        return Fate(
            one.attempt_id, one.letter_id, outcome, LetterState.PARKED, "free" if known else "held",
            deadline=target.copy_window if target is not None and outcome is AttemptOutcome.UNKNOWN else None,
            detail=detail, reason=reason, known=known, ill=ill,
        )  # fmt: skip
    due = dlq.rest(one.tries, dice(), one).total_seconds()
    asked = _asked(failure.after) if isinstance(failure, Refused) else 0.0
    return Fate(
        one.attempt_id, one.letter_id, outcome, LetterState.WAITING, "free" if known else "held",
        due=max(due, asked), detail=detail, known=known, ill=ill,
    )  # fmt: skip
