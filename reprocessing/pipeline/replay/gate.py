"""The gate: decide whether a lane's head is sent, waits, is parked or is closed as a duplicate.

A lane's head is its first unfinished letter. The rate limit is checked later (`take_tokens.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import assert_never

from reprocessing.domain.lifecycle import LetterState, ParkedReason
from reprocessing.domain.replay.verdicts import Go, OpenBreaker, Park, Skip, Verdict, Wait
from reprocessing.domain.safety.failure_cause import (
    WAITS_FOR_CAUSE,
    LastFailures,
    MessageFails,
    NotKnownYet,
    TargetFails,
    failure_cause,
)
from reprocessing.models import ClaimState
from reprocessing.store.ordering.lane_state import LaneState
from reprocessing.store.replay.settlement import LetterClosing
from reprocessing.store.safety.send_limits import SendLimit

#: A lane waits for this time if another letter with the same idempotency key is being sent.
EQUAL_UNDER_WAY = timedelta(seconds=2)
#: A lane waits for this time, at most, if the target may still have a message with the same idempotency key.
EQUAL_MAY_BE_THERE = timedelta(seconds=30)
#: The lane needs no waiting time: it is not leased before its circuit breaker closes and its target is healthy.
UNTIL_BREAKER_CLOSES = timedelta(0)
#: A lane waits for this time if a capture of its DLQ must show first whether AWS moved the message.
UNTIL_CAPTURED = timedelta(seconds=30)
MAYBE_MOVED = "AWS may have moved the message; waiting for the next capture"
#: Waiting times of a lane: its breaker was not found; outcomes of other letters are needed; its target is full.
UNKNOWN_BREAKER, UNTIL_OTHERS_SETTLE, TARGET_IS_FULL = timedelta(seconds=10), timedelta(seconds=5), timedelta(seconds=2)


@dataclass(slots=True)
class Judged:
    """Lanes' heads (first unfinished letters), grouped by the gate's decision."""

    going: list[LaneState] = field(default_factory=list)  # heads that may be sent as soon as they get tokens
    waiting: list[tuple[LaneState, Wait]] = field(default_factory=list)
    closings: dict[tuple[int, int], LetterClosing] = field(default_factory=dict)  # by (lane id, fence)
    full: set[int] = field(default_factory=set)  # ids of breakers whose targets may not have more letters
    opening: dict[int, str] = field(default_factory=dict)  # why to open a circuit breaker, by breaker id


def judge_heads(
    some: Sequence[LaneState],
    *,
    send_limits: Mapping[int, SendLimit],
    room: Counter[int],
    failures: Mapping[int, LastFailures],
) -> Judged:
    """Decide about the heads (first unfinished letters) of many lanes.

    Args:
        some: the lanes, with their heads.
        send_limits: what circuit breakers and health checks permit now, by breaker id.
        room: how many more letters each target may get whose outcome is not known yet, by target id.
        failures: the last failures of heads that have no attempts left, by letter id.
    """
    judged, left = Judged(), room.copy()
    canaries: set[int] = set()
    for lane in sorted(some, key=lambda lane: lane.tries or 0):  # few tries first: the first is the canary
        breaker, target, letter = lane.breaker_id or 0, lane.target_id or 0, lane.letter_id or 0
        place = lane.lane_id, lane.fence
        verdict = judge_head(
            lane, send_limits.get(breaker), room=left[target], canary_out=breaker in canaries,
            failures=failures.get(letter),
        )  # fmt: skip
        match verdict:
            case Go():
                left[target] -= 1
                canaries.add(breaker)
                judged.going.append(lane)
            case Wait():
                judged.waiting.append((lane, verdict))
                if target and left[target] <= 0:
                    judged.full.add(breaker)
            case Skip(original):
                judged.closings[place] = LetterClosing(letter, LetterState.DUPLICATE, original=original)
            case Park(reason, detail):
                judged.closings[place] = LetterClosing(letter, LetterState.PARKED, reason=reason, detail=detail)
            case OpenBreaker(why):
                judged.opening[breaker] = why
                judged.waiting.append((lane, Wait(UNTIL_OTHERS_SETTLE, "the circuit breaker is open")))
            case _ as never:
                assert_never(never)
    return judged


def judge_head(
    lane: LaneState, limit: SendLimit | None, *, room: int, canary_out: bool = False,
    failures: LastFailures | None = None,
) -> Verdict:  # fmt: skip
    """Decide about the head (first unfinished letter) of one lane.

    `limit`: what the circuit breaker and the health checks permit now; None: not known. `room`: how many more letters
    the target may get whose outcome is not known yet. `canary_out`: True: another letter is the breaker's canary
    already. `failures`: the last failures of a head that has no attempts left.

    This function does not check whether the run is running, and whether sends are stopped. That is checked when lanes
    are leased, and again when the attempt is committed.
    """
    early = _moved(lane) or _held_back(limit, canary_out=canary_out) or _equal_letter(lane)
    if early is not None:
        return early
    if is_spent(lane) and (spent := _spent(failures, on_trial=limit is not None and limit.on_trial)):
        return spent
    if lane.stale and lane.never_sent and not lane.released and lane.stale_policy == "park":
        return Park(ParkedReason.STALE)
    ceiling = lane.receive_limit
    if ceiling is not None and not lane.released and (lane.receives or 0) > ceiling:
        return Park(ParkedReason.RECEIVED_TOO_OFTEN, f"{lane.receives} receives")
    if room <= 0:
        return Wait(TARGET_IS_FULL, "the target has as many messages without an outcome as allowed")
    return Go()


def is_spent(lane: LaneState) -> bool:
    """Return whether a lane's head (first unfinished letter) has no attempts left."""
    return (lane.attempts or 0) >= (lane.max_attempts or 1)


def is_sent_for_spared_attempts(lane: LaneState) -> bool:
    """Return whether a lane's head would have no attempts left if its spared attempts counted.

    Spared attempts are failed attempts during an outage of the target. They do not count.
    """
    return not is_spent(lane) and (lane.tries or 0) >= (lane.max_attempts or 1)


def _spent(failures: LastFailures | None, *, on_trial: bool) -> Verdict | None:
    """Return the decision about a head that has no attempts left; None: it may be sent as a canary."""
    match cause := failure_cause(failures):
        case MessageFails():
            return Park(ParkedReason.ATTEMPTS_SPENT)
        case NotKnownYet():
            return Wait(UNTIL_OTHERS_SETTLE, WAITS_FOR_CAUSE)
        case TargetFails():
            return None if on_trial else OpenBreaker("a message used up its attempts, and no other message succeeded")
        case _:
            assert_never(cause)


def _moved(lane: LaneState) -> Park | Wait | None:
    if lane.gone is None:
        return None
    return Park(ParkedReason.MOVED_BY_AWS) if lane.gone else Wait(UNTIL_CAPTURED, MAYBE_MOVED)


def _held_back(limit: SendLimit | None, *, canary_out: bool) -> Wait | None:
    if limit is None:
        return Wait(UNKNOWN_BREAKER, "the circuit breaker was not found")
    if why := limit.why_blocked:
        return Wait(UNTIL_BREAKER_CLOSES, why)
    if limit.on_trial and canary_out:
        return Wait(UNTIL_BREAKER_CLOSES, "the circuit breaker is half open, and its canary has no outcome yet")
    return None


def _copy_of_equal(lane: LaneState) -> Wait | None:
    """Return how long a lane waits, because its target may have another message with the same idempotency key.

    None: the lane need not wait for this.
    """
    if not lane.claim_rests:
        return None
    after = max(EQUAL_UNDER_WAY, min(EQUAL_MAY_BE_THERE, timedelta(seconds=lane.claim_rests)))
    return Wait(after, "the target may still have a copy of another message with the same idempotency key")


def _equal_letter(lane: LaneState) -> Verdict | None:
    if lane.claim_letter is None or lane.claim_letter == lane.letter_id:
        return None
    match lane.claim_state:
        case ClaimState.HELD:
            why = "another message with the same idempotency key is being sent"
            return _copy_of_equal(lane) or Wait(EQUAL_UNDER_WAY, why)
        case ClaimState.DELIVERED if lane.claim_same_body:
            return Skip(duplicate_of=lane.claim_letter)
        case ClaimState.DELIVERED if not lane.released:
            return Park(ParkedReason.KEY_CONFLICT)
        case ClaimState.DISCARDED:
            return _copy_of_equal(lane) if lane.released else Park(ParkedReason.EQUAL_DISCARDED)
        case _:
            return None
