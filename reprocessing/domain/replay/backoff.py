"""How long a letter rests after a failure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

Jitter = Literal["full", "none"]
_DOUBLINGS = 64  # beyond that every base is past every cap that a timedelta can hold


@dataclass(frozen=True, slots=True)
class Backoff:
    """Doubles from `base` up to `cap`.

    Attributes:
        jitter: "full" spreads the rest evenly between nothing and the whole, so that what failed together does not
            come back together; "none" rests the whole: min(cap, 2^n * base).
    """

    base: timedelta
    cap: timedelta
    jitter: Jitter = "full"

    def delay(self, failures: int, chance: float) -> timedelta:
        """The rest of a letter that has failed.

        Args:
            failures: those before the newest; 0 after the first, which rests `base`.
            chance: a throw of the dice, 0 <= chance < 1; without jitter it does not count.
        """
        whole = min(self.cap / self.base, 2.0 ** min(failures, _DOUBLINGS)) if self.base else 0.0
        return min(self.cap, self.base * whole) * (chance if self.jitter == "full" else 1.0)
