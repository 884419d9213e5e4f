"""Compute a token bucket, which limits the send rate to a target.

`reprocessing.gateways.redis.send_rate` computes the same bucket in Redis.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

#: Seconds for which a worker may use a token of the rate limit after it has taken the token.
TOKEN_LIFE = 0.25
#: Max seconds to wait for further tokens if at least one token is available.
LONGEST_WAIT = 0.1
_MICROSECONDS = 1_000_000


def capacity(rate: float, burst: float | None = None) -> float:
    """Return the most tokens a bucket may hold so that at most `rate` + `burst` letters are sent in any second.

    A worker may use a token up to 0.25 s (`TOKEN_LIFE`) after it got the token. So the tokens of 0.25 s are subtracted
    from the burst. `burst` None: as many tokens as in one second. The result is at least 1, so that one letter can be
    sent. Raise ValueError if the rate is not above 0, or a number is not finite.
    """
    if not (0 < rate < math.inf and 0 <= (burst or 0) < math.inf):
        raise ValueError(f"a rate of {rate} with a burst of {burst} is invalid: the rate must be above 0, both finite")
    return max(1.0, (rate if burst is None else burst) - rate * TOKEN_LIFE)


@dataclass(frozen=True, slots=True)
class Bucket:
    """The tokens of one target at the time `at` (in microseconds). Each second adds `rate` tokens, up to `capacity`."""

    tokens: float
    at: int
    rate: float
    capacity: float

    @classmethod
    def cold(cls, now: int, rate: float, capacity: float) -> Bucket:
        """Return a new bucket. It is empty, because earlier sends to the target are not known."""
        return cls(0.0, now, rate, capacity)

    def filled(self, now: int, rate: float, capacity: float) -> Bucket:
        """Return the bucket at the time `now`, with the tokens that were added since `at`.

        If the rate or the capacity has changed since then, the lower of the old and the new value is used.
        """
        refill = max(0, now - self.at) * min(self.rate, rate) / _MICROSECONDS
        return Bucket(min(self.tokens + refill, self.capacity, capacity), now, rate, capacity)

    def take(self, wanted: int) -> tuple[Bucket, int]:
        """Take up to `wanted` tokens; return the bucket without these tokens, and how many were taken."""
        count = min(wanted, math.floor(self.tokens))
        return replace(self, tokens=self.tokens - count), count

    def wait(self, wanted: int) -> float:
        """Return for how many seconds to wait before up to `wanted` tokens are taken.

        The wait always lasts until the bucket has one token. The wait for further tokens lasts at most 0.1 s.
        """
        for_one = (1.0 - self.tokens) / self.rate
        for_wanted = (min(wanted, math.floor(self.capacity)) - self.tokens) / self.rate
        return max(0.0, for_one, min(for_wanted, LONGEST_WAIT))
