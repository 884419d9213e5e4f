"""When a breaker opens, and what its canary's outcome does. Counted in the order of sending.

A send is `True` when it failed, `False` when it went well, and `None` while it is not settled. Sends from which nothing
follows about the target are none of these: they are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

Sends = Sequence[bool | None]

#: Letters that the ratio is looked for in, where the policy does not ask for more.
WINDOW = 100
#: For how long after its deadline a canary that was taken may stay unsettled, before another one takes its place.
PATIENCE = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What opens a breaker, how long it rests, and what closes it.

    Attributes:
        threshold: so many failures in a row open it.
        ratio: this share of failures among the window opens it, where that has `at_least` letters.
        cooldown: seconds of its first rest; each canary that fails doubles it, up to `cooldown_cap`.
        closes_after: so many canaries that went well close it.
    """

    threshold: int
    ratio: float
    at_least: int
    cooldown: float
    cooldown_cap: float
    closes_after: int

    @property
    def window(self) -> int:
        """How many letters, sent up to the newest failure, are enough to decide."""
        return max(WINDOW, self.threshold, self.at_least)


@dataclass(frozen=True, slots=True)
class Opens:
    """Nothing goes for `rest` seconds."""

    rest: float
    why: str


@dataclass(frozen=True, slots=True)
class Closes:
    """Letters go again."""

    why: str


@dataclass(frozen=True, slots=True)
class Frees:
    """The next canary may go; so many have gone well by now."""

    successes: int


Step = Opens | Closes | Frees


def opens(policy: Policy, sends: Sends) -> str | None:
    """Why a closed breaker opens; None: it stays closed.

    Counted is up to the newest failure, and no further back than the policy's window. An unsettled letter breaks a row
    of failures, and in the ratio it counts as one that did not fail.

    Args:
        policy: of the breaker.
        sends: of the breaker's present epoch, in the order of sending.
    """
    newest = max((place for place, failed in enumerate(sends) if failed), default=None)
    if newest is None:
        return None
    counted = sends[: newest + 1][-policy.window :]
    row = _longest_row(counted)
    if row >= policy.threshold:
        return f"{row} letters in a row failed" if row > 1 else "a letter failed"
    failures = sum(1 for failed in counted if failed)
    if len(counted) >= policy.at_least and failures / len(counted) >= policy.ratio:
        return f"{failures} of {len(counted)} letters failed ({failures / len(counted):.0%})"
    return None


def after_canary(policy: Policy, failed: bool | None, *, successes: int, rest: float) -> Step:  # noqa: FBT001  as a send
    """What a canary that is settled does to its breaker.

    Args:
        policy: of the breaker.
        failed: None: it is settled, and nothing follows from it.
        successes: canaries that went well before it.
        rest: seconds of the rest before it.
    """
    if failed is None:
        return Frees(successes)
    if failed:
        return Opens(next_rest(policy, rest), f"the canary failed after a rest of {rest:g} s")
    if successes + 1 < policy.closes_after:
        return Frees(successes + 1)
    return Closes("the canary went well" if policy.closes_after == 1 else f"{successes + 1} canaries went well")


def next_rest(policy: Policy, rest: float) -> float:
    """Return the seconds that a breaker rests after a rest of `rest` seconds (0: it was closed)."""
    return min(max(rest * 2, policy.cooldown), policy.cooldown_cap)


def _longest_row(sends: Sends) -> int:
    longest = row = 0
    for failed in sends:
        row = row + 1 if failed else 0
        longest = max(longest, row)
    return longest
