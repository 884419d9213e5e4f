"""Decide for a head: go, wait, skip or park. The token of its target's rate is asked for last, by the conductor."""

from __future__ import annotations

from datetime import timedelta

from reprocessing.domain.lifecycle import ParkedReason
from reprocessing.domain.verdict import Go, Park, Skip, Verdict, Wait
from reprocessing.models import ClaimState
from reprocessing.models.brakes import Brake
from reprocessing.models.lanes import Standing

#: How soon a letter asks again whether the twin that goes before it has arrived.
TWIN_UNDER_WAY = timedelta(seconds=2)
#: A lane whose breaker, or target, lets nothing go is not leased until it does: it need not be told when.
AS_SOON_AS_IT_OPENS = timedelta(0)
#: How soon a lane asks again whose head's breaker was not found.
UNKNOWN_BREAKER = timedelta(seconds=10)
#: How soon a lane asks again while its target has as many unsettled letters as it may have.
TARGET_IS_FULL = timedelta(seconds=2)


def head(standing: Standing, brake: Brake | None, *, room: int, canary_out: bool = False) -> Verdict:
    """The verdict over a lane's head.

    Whether its run is still wanted, and nothing stopped, was decided when it was looked up, and is again with the
    intent. Here: target well? breaker closed, or a canary's place free? already delivered? attempts left? in order?
    room at the target?

    Args:
        standing: the lane with its head.
        brake: what its target and its breaker let go; None: not known.
        room: letters that its target may still have unsettled.
        canary_out: another head goes as the breaker's canary.
    """
    early = _held_back(brake, canary_out=canary_out) or _twin(standing)
    if early is not None:
        return early
    if (standing.attempts or 0) >= (standing.max_attempts or 1):
        return Park(ParkedReason.ATTEMPTS_SPENT)
    if standing.stale and standing.never_sent and not standing.released and standing.stale_policy == "park":
        return Park(ParkedReason.STALE)
    ceiling = standing.receive_ceiling
    if ceiling is not None and not standing.released and (standing.receives or 0) > ceiling:
        return Park(ParkedReason.RECEIVED_TOO_OFTEN, f"{standing.receives} receives")
    if room <= 0:
        return Wait(TARGET_IS_FULL, "its target has as many unsettled letters as it may have")
    return Go()


def _held_back(brake: Brake | None, *, canary_out: bool) -> Wait | None:
    if brake is None:
        return Wait(UNKNOWN_BREAKER, "its breaker is not known")
    if shut := brake.why_shut:
        return Wait(AS_SOON_AS_IT_OPENS, shut)
    if brake.on_trial and canary_out:
        return Wait(AS_SOON_AS_IT_OPENS, "the breaker is half open, and a canary is out")
    return None


def _twin(standing: Standing) -> Verdict | None:
    """What the claim on the head's key says, when another letter has it."""
    if standing.claim_letter is None or standing.claim_letter == standing.letter_id:
        return None
    match standing.claim_state:
        case ClaimState.HELD:
            return Wait(TWIN_UNDER_WAY, "another letter with its idempotency key is under way")
        case ClaimState.DELIVERED if standing.claim_same_body:
            return Skip(duplicate_of=standing.claim_letter)
        case ClaimState.DELIVERED if not standing.released:
            return Park(ParkedReason.KEY_CONFLICT)
        case ClaimState.DISCARDED if not standing.released:
            return Park(ParkedReason.TWIN_DISCARDED)
        case _:
            return None
