"""Decide for a head: go, wait, skip or park. The token of its target's rate is asked for last, by the conductor."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import assert_never

from reprocessing.domain.lifecycle import LetterState, ParkedReason
from reprocessing.domain.replay.verdicts import Go, OpenBreaker, Park, Skip, Verdict, Wait
from reprocessing.domain.safety.failure_cause import (
    LastFailures,
    MessageFails,
    NotKnownYet,
    TargetFails,
    failure_cause,
)
from reprocessing.models import ClaimState
from reprocessing.store.ordering.lanes import Standing
from reprocessing.store.replay.settlement import Closing
from reprocessing.store.safety.send_limits import Brake

#: How soon a letter asks again whether the twin that goes before it has arrived.
TWIN_UNDER_WAY = timedelta(seconds=2)
#: How soon at the latest, where the twin is finished, and a copy of it may be in the target: it may come back sooner.
TWIN_MAY_BE_THERE = timedelta(seconds=30)
#: A lane whose breaker, or target, lets nothing go is not leased until it does: it need not be told when.
AS_SOON_AS_IT_OPENS = timedelta(0)
#: How soon a lane asks again whether a capture has seen its head's message, which AWS may have moved.
A_CAPTURE_TELLS = timedelta(seconds=30)
MAYBE_MOVED = "AWS may have moved its message: the next capture tells"
#: How soon a lane asks again whose head's breaker was not found.
UNKNOWN_BREAKER = timedelta(seconds=10)
#: How soon a lane asks again whether other letters of its head's target went well.
OTHERS_TELL = timedelta(seconds=5)
#: How soon a lane asks again while its target has as many unsettled letters as it may have.
TARGET_IS_FULL = timedelta(seconds=2)


@dataclass(slots=True)
class Judged:
    """Heads after the gate.

    Attributes:
        going: those that may go, as soon as there are tokens for them.
        waiting: those whose lanes wait, each with its verdict.
        closings: those that end here, by lane and fence.
        full: breakers of targets that have as many unsettled letters as they may have.
        opening: breakers to be opened, since nothing goes well at their targets, and why.
    """

    going: list[Standing] = field(default_factory=list)
    waiting: list[tuple[Standing, Wait]] = field(default_factory=list)
    closings: dict[tuple[int, int], Closing] = field(default_factory=dict)
    full: set[int] = field(default_factory=set)
    opening: dict[int, str] = field(default_factory=dict)


def heads(
    some: Sequence[Standing], *, brakes: Mapping[int, Brake], room: Counter[int], failures: Mapping[int, LastFailures]
) -> Judged:
    """The verdicts over the heads of many lanes.

    Args:
        some: lanes with their heads.
        brakes: what targets and breakers let go, by breaker.
        room: letters that each target may still have unsettled.
        failures: what is known about those that have no attempts left, by letter.
    """
    judged, left = Judged(), room.copy()
    canaries: set[int] = set()
    for one in sorted(some, key=lambda one: one.tries or 0):  # what has failed least makes the best canary
        breaker, target = one.breaker_id or 0, one.target_id or 0
        letter = one.letter_id or 0
        verdict = head(
            one, brakes.get(breaker), room=left[target], canary_out=breaker in canaries, failures=failures.get(letter)
        )
        match verdict:
            case Go():
                left[target] -= 1
                canaries.add(breaker)
                judged.going.append(one)
            case Wait():
                judged.waiting.append((one, verdict))
                if target and left[target] <= 0:
                    judged.full.add(breaker)
            case Skip(original):
                judged.closings[one.lane_id, one.fence] = Closing(letter, LetterState.DUPLICATE, original=original)
            case Park(reason, detail):
                judged.closings[one.lane_id, one.fence] = Closing(
                    letter, LetterState.PARKED, reason=reason, detail=detail
                )
            case OpenBreaker(why):
                judged.opening[breaker] = why
                judged.waiting.append((one, Wait(OTHERS_TELL, why)))
            case _ as never:
                assert_never(never)
    return judged


def head(
    standing: Standing,
    brake: Brake | None,
    *,
    room: int,
    canary_out: bool = False,
    failures: LastFailures | None = None,
) -> Verdict:
    """The verdict over a lane's head.

    Whether its run is still wanted, and nothing stopped, was decided when it was looked up, and is again with the
    intent. Here: its message moved by AWS? target well? breaker closed, or a canary's place free? already delivered?
    attempts left? in order? room at the target?

    Args:
        standing: the lane with its head.
        brake: what its target and its breaker let go; None: not known.
        room: letters that its target may still have unsettled.
        canary_out: another head goes as the breaker's canary.
        failures: what is known about its failures, where it has no attempts left.
    """
    early = _moved(standing) or _held_back(brake, canary_out=canary_out) or _twin(standing)
    if early is not None:
        return early
    if is_spent(standing) and (spent := _spent(failures, on_trial=brake is not None and brake.on_trial)):
        return spent
    if standing.stale and standing.never_sent and not standing.released and standing.stale_policy == "park":
        return Park(ParkedReason.STALE)
    ceiling = standing.receive_ceiling
    if ceiling is not None and not standing.released and (standing.receives or 0) > ceiling:
        return Park(ParkedReason.RECEIVED_TOO_OFTEN, f"{standing.receives} receives")
    if room <= 0:
        return Wait(TARGET_IS_FULL, "its target has as many unsettled letters as it may have")
    return Go()


def is_spent(standing: Standing) -> bool:
    """Whether a lane's head has no attempts left."""
    return (standing.attempts or 0) >= (standing.max_attempts or 1)


def _spent(failures: LastFailures | None, *, on_trial: bool) -> Verdict | None:
    """What follows for a head without attempts left; None: it goes, as the canary of a breaker that is open already."""
    cause = failure_cause(failures)
    match cause:
        case MessageFails():
            return Park(ParkedReason.ATTEMPTS_SPENT)
        case NotKnownYet():
            return Wait(OTHERS_TELL, "no attempts left; whether its target takes others is not known yet")
        case TargetFails():
            return None if on_trial else OpenBreaker("a message used up its attempts, and no other one went well")
        case _:
            assert_never(cause)


def _moved(standing: Standing) -> Park | Wait | None:
    if standing.gone is None:
        return None
    return Park(ParkedReason.MOVED_BY_AWS) if standing.gone else Wait(A_CAPTURE_TELLS, MAYBE_MOVED)


def _held_back(brake: Brake | None, *, canary_out: bool) -> Wait | None:
    if brake is None:
        return Wait(UNKNOWN_BREAKER, "its breaker is not known")
    if shut := brake.why_shut:
        return Wait(AS_SOON_AS_IT_OPENS, shut)
    if brake.on_trial and canary_out:
        return Wait(AS_SOON_AS_IT_OPENS, "the circuit breaker is half open, and its canary has no outcome yet")
    return None


def _twin_s_copy(standing: Standing) -> Wait | None:
    """The wait for a copy of the finished letter that has the key; None: no copy may be in the target."""
    if not standing.claim_rests:
        return None
    after = max(TWIN_UNDER_WAY, min(TWIN_MAY_BE_THERE, timedelta(seconds=standing.claim_rests)))
    return Wait(after, "a copy of another letter with its idempotency key may be in its target")


def _twin(standing: Standing) -> Verdict | None:
    """What the claim on the head's key says, when another letter has it."""
    if standing.claim_letter is None or standing.claim_letter == standing.letter_id:
        return None
    match standing.claim_state:
        case ClaimState.HELD:
            return _twin_s_copy(standing) or Wait(
                TWIN_UNDER_WAY, "another letter with its idempotency key is under way"
            )
        case ClaimState.DELIVERED if standing.claim_same_body:
            return Skip(duplicate_of=standing.claim_letter)
        case ClaimState.DELIVERED if not standing.released:
            return Park(ParkedReason.KEY_CONFLICT)
        case ClaimState.DISCARDED:
            return _twin_s_copy(standing) if standing.released else Park(ParkedReason.TWIN_DISCARDED)
        case _:
            return None
