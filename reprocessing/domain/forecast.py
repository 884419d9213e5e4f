"""How long a drain will take, before anything is sent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

_UNITS = (("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1))


@dataclass(frozen=True, slots=True)
class Forecast:
    """The least time a drain takes, if nothing fails.

    Attributes:
        bound: what makes it last: the target's rate, or the longest lane, whose letters go one after another.
    """

    seconds: float
    bound: Literal["rate", "lane"]

    @classmethod
    def of(cls, *, letters: int, rate: float | None, longest_lane: int, round_trip: float) -> Forecast:
        """The forecast of a drain.

        Args:
            letters: how many, all together.
            rate: letters a second; None when there is no limit.
            longest_lane: letters of the longest lane.
            round_trip: seconds from one letter of a lane to its next: the way to the target, or the whole window
                in which its outcome is awaited.
        """
        by_rate = letters / rate if rate else 0.0
        by_lane = longest_lane * round_trip
        return cls(by_rate, "rate") if by_rate >= by_lane else cls(by_lane, "lane")

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
