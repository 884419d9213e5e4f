"""How long a drain will take, before anything is sent."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal

#: If the longest lane takes so many times as long as the rate allows, the plan says what would be faster.
_FAR_LONGER: Final = 10
_UNITS = (("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Climb:
    """How the allowed rate rises while nothing fails: see `domain.ramp`, where each step doubles it.

    Attributes:
        share: of the rate, that is allowed at first; above 0 and at most 1.
        every: seconds between two steps.
        first: seconds until the first one, which follows something settled.
    """

    share: float = 1.0
    every: float = 1.0
    first: float = 1.0

    def after(self, steps: int) -> Climb:
        """The same so many steps later."""
        return Climb(share=min(1.0, self.share * 2**steps), every=self.every, first=self.every if steps else self.first)


#: The whole rate from the first letter on.
WHOLE: Final = Climb()


def sending(letters: int, rate: float, climb: Climb = WHOLE) -> float:
    """The least seconds in which so many letters go at a rate that climbs, if nothing fails.

    With the share s, steps every T seconds and the first after F, letters go at rate·s until F, then at rate·2s for T
    seconds, at rate·4s for T, and so on up to the rate itself, from step K = log2(1/s), rounded up, on. So rate·s·F
    letters have gone by F, and by the end of the j-th stretch of T seconds after it, j < K,

        rate·s·F + rate·T·(2s + 4s + … + s·2^j) = rate·s·(F + 2T·(2^j - 1)).

    The last of n letters goes in the first stretch by whose end n have gone; within it letters go evenly. K is below
    1,100 for every share that a float can hold, so the stretches are walked, one after another.
    """
    left, passed, share, lasts = float(letters), 0.0, climb.share, climb.first
    while share < 1 and left > rate * share * lasts:
        left -= rate * share * lasts
        passed += lasts
        share, lasts = min(1.0, 2 * share), climb.every
    return passed + left / (rate * share)


def next_turn(seconds: float, every: float) -> float:
    """Seconds from a turn to the first one that begins more than so many later; `every` 0: there is always one.

    What is sent after a turn has begun, and known by one that begins so many seconds later, is known by that one.
    """
    return (math.floor(seconds / every) + 1) * every if every else seconds


@dataclass(frozen=True, slots=True)
class Forecast:
    """The least time a drain takes, if nothing fails.

    Attributes:
        by_rate: seconds that the target's rate asks for, its climb and the waits of waves included.
        by_lane: seconds that the longest lane asks for, whose letters go one after another.
    """

    by_rate: float
    by_lane: float

    @classmethod
    def of(  # noqa: PLR0913  # each by its name
        cls, *, letters: int, rate: float | None, longest_lane: int, round_trip: float, climb: Climb = WHOLE,
        waits: float = 0.0, first: float | None = None,
    ) -> Forecast:  # fmt: skip
        """The forecast of a drain.

        Args:
            letters: how many, all together.
            rate: letters a second; None when there is no limit.
            longest_lane: letters of the longest lane.
            round_trip: seconds from one letter of a lane to its next: the way to the target, or the whole window
                in which its outcome is awaited.
            climb: how the rate begins and rises.
            waits: seconds in which nothing is sent, since waves wait for their outcomes.
            first: the same as `round_trip` for the first letter of a lane, where that may take less.
        """
        by_rate = sending(letters, rate, climb) if rate and letters else 0.0
        trips = [round_trip if first is None else first] * bool(longest_lane)
        return cls(waits + by_rate, sum(trips) + max(longest_lane - 1, 0) * round_trip)

    @property
    def seconds(self) -> float:
        """The longer of both."""
        return max(self.by_rate, self.by_lane)

    @property
    def bound(self) -> Literal["rate", "lane"]:
        """What makes it last."""
        return "rate" if self.by_rate >= self.by_lane else "lane"

    @property
    def is_held_up(self) -> bool:
        """Whether the longest lane takes more than ten times as long as the rate allows, and more than ten seconds."""
        return self.by_lane > _FAR_LONGER * max(self.by_rate, 1.0)

    def __str__(self) -> str:
        reason = "by the target's rate" if self.bound == "rate" else "by its longest lane"
        return f"{in_words(self.seconds)}, {reason}"


def in_words(seconds: float) -> str:
    """A duration as people say it: "at most a second", "about 90 seconds", "about 3 hours"; the unit fits twice."""
    if seconds <= 1:
        return "at most a second"
    unit, length = next((pair for pair in _UNITS if seconds >= 2 * pair[1]), _UNITS[-1])
    count = max(round(seconds / length), 2)
    return f"about {count:,} {unit}s"
