"""A token bucket: how many letters may go now.

`reprocessing.gateways.redis.send_rate` does the same sums on the server.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

#: Seconds after its grant in which a token may be spent.
TOKEN_LIFE = 0.25
#: Seconds that who wants many tokens waits for them at most, where there will be at least one by then.
PATIENCE = 0.1
_MICROSECONDS = 1_000_000


def capacity(rate: float, burst: float | None = None) -> float:
    """The most tokens a bucket may hold, so that no second sees more than `rate` + `burst` letters.

    Tokens live for a while, so the letters of one second can come from the grants of a second and `TOKEN_LIFE`; what
    flows in during that while is taken off the burst. A burst below 1 + rate/4 counts as that: one letter must fit.

    Args:
        rate: letters a second, above 0.
        burst: letters at once; None stands for one second of the rate.
    """
    if not (0 < rate < math.inf and 0 <= (burst or 0) < math.inf):
        raise ValueError(f"a rate of {rate} with a burst of {burst} is none: both are finite, and the rate is above 0")
    return max(1.0, (rate if burst is None else burst) - rate * TOKEN_LIFE)


@dataclass(frozen=True, slots=True)
class Bucket:
    """The tokens of one target at one moment.

    Attributes:
        at: microseconds of the clock that fills it.
        rate: tokens a second.
    """

    tokens: float
    at: int
    rate: float
    capacity: float

    @classmethod
    def cold(cls, now: int, rate: float, capacity: float) -> Bucket:
        """A bucket of which nothing is known: empty, since what went out before it is not known either."""
        return cls(0.0, now, rate, capacity)

    def filled(self, now: int, rate: float, capacity: float) -> Bucket:
        """What it holds later. Where rate or capacity changed, the time until now had the lower of both."""
        refill = max(0, now - self.at) * min(self.rate, rate) / _MICROSECONDS
        return Bucket(min(self.tokens + refill, self.capacity, capacity), now, rate, capacity)

    def take(self, wanted: int) -> tuple[Bucket, int]:
        """The bucket after as many of the wanted tokens were taken as it has, and how many these are."""
        count = min(wanted, math.floor(self.tokens))
        return replace(self, tokens=self.tokens - count), count

    def wait(self, wanted: int) -> float:
        """Seconds until it is worth asking for `wanted` more: at least one is there then, and many if that is soon."""
        one = (1.0 - self.tokens) / self.rate
        many = (min(wanted, math.floor(self.capacity)) - self.tokens) / self.rate
        return max(0.0, one, min(many, PATIENCE))
