"""Forecast how long a drain (a run that sends a selection of a DLQ's messages) takes if nothing fails.

The letters (messages) of a lane, which has one ordering key, are sent one after another.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

#: The plan suggests faster options if the longest lane takes over ten times as long as the rate requires.
_FAR_LONGER: Final = 10
_UNITS = (("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class RateClimb:
    """How the allowed rate rises while nothing fails: each step doubles the rate (`domain.safety.rate_ramp`).

    Attributes:
        share: the share of the full rate that is allowed at first; above 0 and at most 1.
        every: seconds between two steps.
        first: seconds until the first step.
    """

    share: float = 1.0
    every: float = 1.0
    first: float = 1.0

    def after(self, steps: int) -> RateClimb:
        """Return how the rate rises from its level after `steps` steps."""
        return RateClimb(
            share=min(1.0, self.share * 2**steps), every=self.every, first=self.every if steps else self.first
        )


#: The whole rate is allowed from the first letter on.
NO_CLIMB: Final = RateClimb()


def seconds_to_send(letters: int, rate: float, climb: RateClimb = NO_CLIMB) -> float:
    """Return the least seconds in which `letters` can be sent at a rate that rises, if nothing fails.

    Let s be `climb.share`, with the first step after F seconds and a further step every T seconds. Then the rate is
    rate·s until F, then rate·2s, rate·4s and so on. The whole rate is reached after log2(1/s) steps, at most 1,100.
    """
    left, passed, share, lasts = float(letters), 0.0, climb.share, climb.first
    while share < 1 and left > rate * share * lasts:
        left -= rate * share * lasts
        passed += lasts
        share, lasts = min(1.0, 2 * share), climb.every
    return passed + left / (rate * share)


def letters_sent_in(seconds: float, rate: float, climb: RateClimb = NO_CLIMB) -> float:
    """Return how many letters can be sent in `seconds` at a rate that rises. The inverse of `seconds_to_send`."""
    left, sent, share, lasts = max(seconds, 0.0), 0.0, climb.share, climb.first
    while share < 1 and left > lasts:
        left -= lasts
        sent += rate * share * lasts
        share, lasts = min(1.0, 2 * share), climb.every
    return sent + rate * share * left


def peak_rate(letters: int, rate: float, climb: RateClimb = NO_CLIMB) -> float:
    """Return the highest rate that is reached before `letters` are sent at a rate that rises, if nothing fails."""
    left, share, lasts = float(letters), climb.share, climb.first
    while share < 1 and left > rate * share * lasts:
        left -= rate * share * lasts
        share, lasts = min(1.0, 2 * share), climb.every
    return rate * share


def next_multiple(seconds: float, every: float) -> float:
    """Return the first multiple of `every` seconds that is greater than `seconds`; if `every` is 0, `seconds`."""
    if not every:
        return seconds
    turns = math.floor(seconds / every) + 1
    # If the division was rounded, `every * turns` may not be greater than `seconds`.
    return every * (turns if every * turns > seconds else turns + 1)


@dataclass(frozen=True, slots=True)
class Forecast:
    """The least time that a drain takes, if nothing fails.

    Attributes:
        by_rate: seconds that all letters take at the target's rate, with its ramp-up and the waits between waves.
        by_lane: seconds that the longest lane takes, whose letters are sent one after another.
        by_outcomes: seconds until the last letter may be sent, since only so many may wait for their outcome.
    """

    by_rate: float
    by_lane: float
    by_outcomes: float = 0.0

    @classmethod
    def of(  # noqa: PLR0913  # each by its name
        cls, *, letters: int, rate: float | None, longest_lane: int, round_trip: float, climb: RateClimb = NO_CLIMB,
        waits: float = 0.0, first: float | None = None, room: int | None = None, outcome_in: float = 0.0,
    ) -> Forecast:  # fmt: skip
        """Return the least time that a drain of these letters takes.

        Args:
            letters: how many letters are sent.
            rate: letters a second; None: no limit.
            longest_lane: how many letters the longest lane has.
            round_trip: seconds from one letter of a lane to the next letter, which waits for the answer to the request,
                or for the outcome.
            climb: how the rate rises at the start (ramp-up).
            waits: seconds in which nothing is sent because waves wait for outcomes.
            first: seconds for the first letter of a lane; None: `round_trip`.
            room: the most letters that may wait for their outcome; None: no limit.
            outcome_in: shortest time from a send until its outcome is known.
        """
        by_rate = seconds_to_send(letters, rate, climb) if rate and letters else 0.0
        trips = [round_trip if first is None else first] * bool(longest_lane)
        by_lane = sum(trips) + max(longest_lane - 1, 0) * round_trip
        groups = (letters - 1) // room if room and letters else 0
        return cls(waits + by_rate, by_lane, waits + groups * outcome_in if groups and outcome_in else 0.0)

    @property
    def seconds(self) -> float:
        """Return the seconds of the whole drain, the longest of `by_rate`, `by_lane` and `by_outcomes`."""
        return max(self.by_rate, self.by_lane, self.by_outcomes)

    @property
    def bound(self) -> Literal["rate", "lane", "outcomes"]:
        """Return what determines the duration, because it takes longest: "rate", "lane" (the longest) or "outcomes"."""
        if self.by_outcomes > max(self.by_rate, self.by_lane):
            return "outcomes"
        return "rate" if self.by_rate >= self.by_lane else "lane"

    @property
    def without_lanes(self) -> float:
        """Return the seconds that the drain would take if no letter waited for another letter of its lane."""
        return max(self.by_rate, self.by_outcomes)

    @property
    def is_far_slower_by_lane(self) -> bool:
        """Return whether the longest lane takes over ten times as long as all else requires, and over ten seconds."""
        return self.by_lane > _FAR_LONGER * max(self.without_lanes, 1.0)

    def __str__(self) -> str:
        reasons = {"rate": "the target's rate", "lane": "the longest key queue", "outcomes": "the wait for outcomes"}
        return f"{duration_in_words(self.seconds)}, limited by {reasons[self.bound]}"


def duration_in_words(seconds: float) -> str:
    """Return a duration in words: "at most a second", "about 90 seconds", "about 3 hours"."""
    if seconds <= 1:
        return "at most a second"
    unit, length = next((pair for pair in _UNITS if seconds >= 2 * pair[1]), _UNITS[-1])
    count = max(round(seconds / length), 2)
    return f"about {count:,} {unit}s"


def time_in_words(at: datetime, now: datetime) -> str:
    """Return a time as text, such as "20:32:00 UTC", with the date if that is not the date of `now`."""
    return f"{'' if at.date() == now.date() else f'{at:%Y-%m-%d} '}{at:%H:%M:%S} UTC"


#: A measured rate below this one (messages/s) is given in messages per minute.
_SLOW: Final = 0.1


def rate_in_words(rate: float, *, digits: int = 3) -> str:
    """Return a rate in words, such as "1 message/s" or "0.0333 messages/s". `digits`: significant digits."""
    text = f"{rate:.{digits}g}" if rate < 10**digits else f"{rate:,.0f}"
    return f"{text} message{'' if text == '1' else 's'}/s"


def measured_rate_in_words(rate: float) -> str:
    """Return a measured rate in words. A rate below 0.1 messages/s is given per minute, such as "1 message/min"."""
    if not 0 < rate < _SLOW:
        return rate_in_words(rate)
    n = round(rate * 60)
    return f"{n} message{'' if n == 1 else 's'}/min" if n else "less than 1 message/min"
