"""Compute a token bucket. `reprocessing.gateways.redis.send_rate` computes the same bucket in Redis."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

#: Seconds for which a token may be used after it was taken.
TOKEN_LIFE = 0.25
#: Most seconds to wait for further tokens if at least one token is available.
PATIENCE = 0.1
_MICROSECONDS = 1_000_000


def capacity(rate: float, burst: float | None = None) -> float:
    """Return the most tokens a bucket may hold so that at most `rate` + `burst` letters are sent in any second.

    Tokens may be used for `TOKEN_LIFE` after their grant; the tokens of that time are subtracted from the burst. The
    burst is at least 1 + rate/4, because one letter must fit; without a burst, it is one second of the rate.
    """
    if not (0 < rate < math.inf and 0 <= (burst or 0) < math.inf):
        raise ValueError(f"a rate of {rate} with a burst of {burst} is invalid: the rate must be above 0, both finite")
    return max(1.0, (rate if burst is None else burst) - rate * TOKEN_LIFE)


@dataclass(frozen=True, slots=True)
class Bucket:
    """The tokens of one target at the time `at` (in microseconds). `rate` tokens are added each second."""

    tokens: float
    at: int
    rate: float
    capacity: float

    @classmethod
    def cold(cls, now: int, rate: float, capacity: float) -> Bucket:
        """Return an empty bucket, since the earlier sends to the target are not known."""
        return cls(0.0, now, rate, capacity)

    def filled(self, now: int, rate: float, capacity: float) -> Bucket:
        """Return the bucket at `now`. If the rate or the capacity changed, its lower value counts until now."""
        refill = max(0, now - self.at) * min(self.rate, rate) / _MICROSECONDS
        return Bucket(min(self.tokens + refill, self.capacity, capacity), now, rate, capacity)

    def take(self, wanted: int) -> tuple[Bucket, int]:
        """Return the bucket after taking up to `wanted` tokens, and how many were taken."""
        count = min(wanted, math.floor(self.tokens))
        return replace(self, tokens=self.tokens - count), count

    def wait(self, wanted: int) -> float:
        """Return the seconds until one token is available, or several of the `wanted` tokens (see `PATIENCE`)."""
        one = (1.0 - self.tokens) / self.rate
        many = (min(wanted, math.floor(self.capacity)) - self.tokens) / self.rate
        return max(0.0, one, min(many, PATIENCE))
