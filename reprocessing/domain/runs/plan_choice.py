"""Compare ways to start a planned run: their time, requests, cost, load on the consumer, and messages that expire.

All figures assume that nothing fails. They are computed from counts of the plan's messages for each target, so a
comparison takes no longer for a large plan.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from reprocessing.domain.aws import pricing
from reprocessing.domain.aws.pricing import Cost, Prices
from reprocessing.domain.runs.forecast import (
    Forecast,
    RateClimb,
    letters_sent_in,
    next_multiple,
    peak_rate,
)
from reprocessing.domain.safety import wave_progression

#: The rate that the comparison offers if no target of a plan has a rate limit.
USUAL_RATE: Final = 10.0


@dataclass(frozen=True, slots=True)
class Choice:
    """One way to run a plan, which is a run that was not started yet.

    Attributes:
        rate: the most messages a second to each target. None: the rate limit of each target applies.
        waits_for_outcomes: whether a key's next message waits for the outcome of the message before, if the target is
            set so. If false, it is sent as soon as the target has accepted the message before.
        waves: whether 1, 10 and 100 messages are sent before all others.
    """

    rate: float | None
    waits_for_outcomes: bool
    waves: bool


@dataclass(frozen=True, slots=True)
class Expiring:
    """SQS deletes this number of messages (`letters`), the first in `seconds`; below 0: the first is deleted."""

    seconds: float
    letters: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetLoad:
    """The messages of a plan for one target, and the target's limits. All times are seconds.

    Attributes:
        letters: number of messages.
        lanes: number of key queues. A key queue has the messages of one ordering key, which are sent one at a time.
        longest: number of messages of the longest key queue.
        size: bytes of all messages.
        rate: the most messages a second. None if there is no limit.
        ramp: the share of the rate that is allowed at first (ramp-up).
        ramp_every: time until the allowed share of the rate doubles.
        tail: shortest time from a send to its outcome.
        round_trip: time from the send of one message of a key to the send of the key's next message.
        every: time between two captures, which show whether messages came back. 0 if a capture is always running.
        room: the most messages that may wait for their outcome; None: no limit.
        outcome_in: shortest time from a send until a capture shows its outcome.
        is_queue: whether the target is an SQS queue, so that SQS charges for sends to it.
        fifo: whether the target is a FIFO queue.
        late: number of messages that expire before the outcomes of earlier messages of their keys are known.
        expiring: messages that SQS deletes, the soonest first.
    """

    name: str
    letters: int
    lanes: int
    longest: int
    size: int
    rate: float | None
    ramp: float
    ramp_every: float
    tail: float
    round_trip: float
    every: float
    is_queue: bool
    fifo: bool
    late: int
    expiring: tuple[Expiring, ...] = ()
    room: int | None = None
    outcome_in: float = 0.0

    def under(self, choice: Choice) -> TargetLoad:
        """Return this target's load with the rate and the waits that a choice allows."""
        rate = self.rate if choice.rate is None else min(choice.rate, self.rate or choice.rate)
        waits = choice.waits_for_outcomes
        return replace(
            self, rate=rate, round_trip=self.round_trip if waits else 0.0, late=self.late if waits else 0
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Peak:
    """The most messages a second that a target gets in the run, without bursts; None: no limit is known."""

    target: str
    rate: float | None


@dataclass(frozen=True, slots=True)
class ChoiceFigures:
    """What a plan takes if it runs as one choice says.

    Attributes:
        seconds: time until the last outcome is known.
        ends_at: when the last outcome is known, if the run starts now.
        cost: SQS's charge for sends, deletes, and for checks whether targets are empty.
        peaks: the highest rate at each target.
        late: least number of messages whose copies SQS deletes before they are sent; PostgreSQL keeps the messages.
    """

    choice: Choice
    seconds: float
    ends_at: datetime
    cost: Cost
    peaks: tuple[Peak, ...]
    late: int


def wave_wait(loads: Sequence[TargetLoad]) -> float:
    """Return the shortest time from one wave (part of a run) to the next, in seconds."""
    return min((next_multiple(load.tail, load.every) for load in loads), default=0.0)


def waves_before_last(loads: Sequence[TargetLoad], *, waves: bool) -> int:
    """Return how many waves must succeed before the last letter is sent; 0: the run has no waves."""
    return wave_progression.waves_before_last(sum(load.letters for load in loads)) if waves else 0


def forecast_of(load: TargetLoad, among: Sequence[TargetLoad], *, waves: bool) -> Forecast:
    """Return the forecast for one target of a plan. `among`: the loads of all targets of the plan.

    The forecast assumes that the rate rises by one step with each wave.
    """
    before, wait = waves_before_last(among, waves=waves), wave_wait(among)
    return Forecast.of(
        letters=load.letters, rate=load.rate, longest_lane=load.longest, round_trip=load.round_trip,
        climb=_climb(load, before if wait else 0), first=min(load.tail, load.round_trip),
        waits=_waits(among, before, wait), room=load.room, outcome_in=load.outcome_in,
    )  # fmt: skip


def figures(
    loads: Sequence[TargetLoad], choice: Choice, *, now: datetime, deletes: Cost, prices: Prices
) -> ChoiceFigures:
    """Return what a plan takes if it runs as `choice` says. `deletes`: the cost of deletes from the DLQ."""
    limited = [load.under(choice) for load in loads]
    before, wait = waves_before_last(limited, waves=choice.waves), wave_wait(limited)
    waits, steps = _waits(limited, before, wait), before if wait else 0
    ends = [_end(load, forecast_of(load, limited, waves=choice.waves)) for load in limited]
    seconds = max(ends, default=0.0)
    return ChoiceFigures(
        choice=choice, seconds=seconds, ends_at=now + timedelta(seconds=seconds),
        cost=sum((_cost(load, end, prices) for load, end in zip(limited, ends, strict=True)), deletes),
        peaks=tuple(Peak(load.name, _peak(load, steps)) for load in limited),
        late=sum(max(load.late, _late_by_limits(load, steps, waits)) for load in limited),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Offer:
    """One column of the comparison of choices: its title, and the choice that a person can take."""

    title: str
    choice: Choice


def offers(
    loads: Sequence[TargetLoad], configured: Choice, own: Choice, asked: Choice | None = None, *, may_overtake: bool
) -> list[Offer]:
    """Return the choices to compare, without repetitions.

    `configured`: the choice from the settings of DLQ and targets. `own`: the plan's present choice. `asked`: the choice
    that a person entered; None: no choice was entered. `may_overtake`: whether later messages of a key may be delivered
    before a message that fails again.
    """
    rates = [load.rate for load in loads if load.rate is not None]
    half = max(rates) / 2 if rates else USUAL_RATE
    offered = [
        Offer("As configured", configured),
        Offer("Half the rate" if rates else f"At {USUAL_RATE:g} messages/s", replace(configured, rate=half)),
        Offer("All at once" if configured.waves else "In waves", replace(configured, waves=not configured.waves)),
    ]
    if may_overtake and any(load.round_trip and load.longest > 1 for load in loads):
        offered.append(Offer("Without waiting for outcomes", replace(configured, waits_for_outcomes=False)))
    known = [offer.choice for offer in offered]
    added = [Offer("Your values", asked)] if asked and asked not in (*known, own) else []
    return [*added, *([] if own in known else [Offer("This plan", own)]), *offered]


def _end(load: TargetLoad, forecast: Forecast) -> float:
    """Return the seconds until the last outcome is known (with outcome `accepted`: until the last message is sent)."""
    return max(forecast.by_rate + load.tail, forecast.by_lane, forecast.by_outcomes + load.tail)


def _climb(load: TargetLoad, steps: int) -> RateClimb:
    return RateClimb(share=load.ramp, every=load.ramp_every, first=max(load.ramp_every, load.tail)).after(steps)


def _waits(loads: Sequence[TargetLoad], before: int, wait: float) -> float:
    """Return the seconds in which nothing is sent, because waves wait for outcomes."""
    first = min((load.tail for load in loads), default=0.0)
    return first + (before - 1) * wait if before else 0.0


def _peak(load: TargetLoad, steps: int) -> float | None:
    by_rate = None if load.rate is None else peak_rate(load.letters, load.rate, _climb(load, steps))
    by_lanes = load.lanes / load.round_trip if load.round_trip else None
    return min((rate for rate in (by_rate, by_lanes) if rate is not None), default=None)


def _cost(load: TargetLoad, seconds: float, prices: Prices) -> Cost:
    """Return what SQS charges for one target: for its messages, and for about one check a second of their outcomes."""
    if not load.is_queue:
        return Cost()
    each = prices.of(fifo=load.fifo)
    checks = math.ceil(seconds) if load.tail else 0
    return pricing.cost_of_sends(load.letters, load.size, longest=load.longest, each=each) + Cost.of(
        0, checks, each=each
    )


def _late_by_limits(load: TargetLoad, steps: int, waits: float) -> int:
    """Return how many messages expire before rate and outcomes allow them. Those that expire soonest are sent first."""
    late = before = 0
    climb = _climb(load, steps)
    for expiring in load.expiring:
        if expiring.seconds > 0:
            sent = load.letters
            if load.rate is not None:
                sent = math.floor(letters_sent_in(expiring.seconds - waits, load.rate, climb))
            if load.room and load.outcome_in:
                sent = min(sent, load.room * (math.floor(max(expiring.seconds - waits, 0.0) / load.outcome_in) + 1))
            late += expiring.letters - min(max(sent - before, 0), expiring.letters)
        before += expiring.letters
    return late
