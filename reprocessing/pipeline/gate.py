"""Decide for a head: go, wait, skip or park. The token of its target's rate is asked for last, by the conductor."""

from __future__ import annotations

from datetime import timedelta

from reprocessing.domain.lifecycle import ParkedReason
from reprocessing.domain.verdict import Go, Park, Skip, Verdict, Wait
from reprocessing.models import ClaimState
from reprocessing.models.lanes import Standing

#: How soon a letter asks again whether the twin that goes before it has arrived.
TWIN_UNDER_WAY = timedelta(seconds=2)
#: How soon a lane asks again while its target has as many unsettled letters as it may have.
TARGET_IS_FULL = timedelta(seconds=2)


def head(standing: Standing, *, room: int) -> Verdict:
    """The verdict over a lane's head.

    Whether its run is still wanted, and nothing stopped, was decided when it was looked up, and is again with the
    intent. Here: already delivered? attempts left? in order? room at the target?

    Args:
        standing: the lane with its head.
        room: letters that its target may still have unsettled.
    """
    if (twin := _twin(standing)) is not None:
        return twin
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
