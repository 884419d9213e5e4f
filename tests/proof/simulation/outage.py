"""When the consumer of a world is down: for how long, how often, and for which keys."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Final, Literal, assert_never

Kind = Literal["usual", "a second", "ten minutes", "three days", "flapping", "half of the keys"]
#: How many of a hundred worlds have each kind.
KINDS: Final[dict[Kind, int]] = {
    "usual": 70, "a second": 8, "ten minutes": 8, "three days": 1, "flapping": 7, "half of the keys": 6,
}  # fmt: skip
_TEN_MINUTES, _THREE_DAYS = 600.0, 259_200.0
#: A consumer that flaps goes down so often, once in so many seconds, for a part of them.
_FLAPS, _FLAPS_EVERY = 6, 20.0
#: Seconds after the last fault for which half of the keys still fail.
_HALF_OUTLASTS: Final = 120.0


@dataclass(frozen=True, slots=True)
class Outage:
    """When a world's consumer fails what it receives.

    Attributes:
        spans: beginnings and ends, in seconds after the beginning of the world.
        keys: whose events fail; None: the events of all keys.
    """

    spans: tuple[tuple[float, float], ...] = ()
    keys: frozenset[str | None] | None = None

    def fails(self, key: str | None, at: float) -> bool:
        """Return whether an event of this key fails, so many seconds after the beginning."""
        return (self.keys is None or key in self.keys) and any(since <= at < until for since, until in self.spans)

    @property
    def begins(self) -> float:
        """Return the seconds after the beginning at which the consumer fails for the first time."""
        return min((since for since, _ in self.spans), default=0.0)

    @property
    def ends(self) -> float:
        """Return the seconds after the beginning at which the consumer is well for good."""
        return max((until for _, until in self.spans), default=0.0)

    @property
    def is_single(self) -> bool:
        return self.keys is None and len(self.spans) == 1


def outage(dice: Random, usual: Outage, *, trouble: float, keys: set[str | None], kind: Kind | None = None) -> Outage:
    """Return the outage of a world whose faults end after `trouble` seconds.

    Args:
        dice: of the seed.
        usual: what most worlds have: a short outage, or none.
        trouble: seconds.
        keys: of the world's events.
        kind: in the place of a throw.
    """
    kind = kind or dice.choices(list(KINDS), list(KINDS.values()))[0]
    begins = dice.uniform(0, trouble)
    match kind:
        case "usual":
            return usual
        case "a second":
            return Outage(((begins, begins + 1),))
        case "ten minutes":
            return Outage(((begins, begins + _TEN_MINUTES),))
        case "three days":
            return Outage(((begins, begins + _THREE_DAYS),))
        case "flapping":
            downs = [begins + number * _FLAPS_EVERY for number in range(_FLAPS)]
            return Outage(tuple((down, down + dice.uniform(0.1, 0.9) * _FLAPS_EVERY) for down in downs))
        case "half of the keys":
            return Outage(((0.0, trouble + _HALF_OUTLASTS),), frozenset(sorted(keys, key=str)[::2]))
        case _ as never:
            assert_never(never)
