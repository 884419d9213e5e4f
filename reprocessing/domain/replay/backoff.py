"""Compute the backoff: how long a letter waits after a failed attempt."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, Protocol

Jitter = Literal["full", "none"]
_DOUBLINGS = 64  # max doublings: more would exceed the longest timedelta


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential backoff: the delay after the first failure is `base`. Each further failure doubles it, up to `cap`.

    The jitter "full" multiplies the delay by a random number between 0 and 1. The jitter "none" leaves the delay as
    it is.
    """

    base: timedelta
    cap: timedelta
    jitter: Jitter = "full"

    def delay(self, failures: int, chance: float) -> timedelta:
        """Return the delay between an attempt that failed and the next attempt.

        `failures`: how many attempts failed earlier. `chance`: a random number in [0, 1), for full jitter.
        """
        whole = min(self.cap / self.base, 2.0 ** min(failures, _DOUBLINGS)) if self.base else 0.0
        return min(self.cap, self.base * whole) * (chance if self.jitter == "full" else 1.0)


class OwnBackoff(Protocol):
    """The backoff that a letter has from its rule, or from its rule's rate class: base (s), cap (s) and jitter.

    If all three are None, the letter has the backoff of its DLQ.
    """

    @property
    def backoff_base(self) -> float | None: ...  # noqa: D102
    @property
    def backoff_cap(self) -> float | None: ...  # noqa: D102
    @property
    def backoff_jitter(self) -> str | None: ...  # noqa: D102
