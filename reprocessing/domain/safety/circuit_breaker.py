"""Decide when a circuit breaker opens, and what a canary's result changes.

A send is `True` if it failed, `False` if it succeeded, `None` if its outcome is not known. Sends are in the order of
sending, without sends whose outcome says nothing about the target.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

Sends = Sequence[bool | None]

#: Number of newest sends that the failure ratio is computed from, unless the policy needs more.
WINDOW = 100
#: How long after its deadline a canary may be unsettled before another one is sent.
PATIENCE = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The settings of a circuit breaker.

    Attributes:
        threshold: number of failures in a row that open the breaker.
        ratio: share of failures in the window that opens the breaker, if the window has `at_least` sends.
        cooldown: seconds; doubled by each failed canary, up to `cooldown_cap`.
        closes_after: number of successful canaries (test sends) that close the breaker.
    """

    threshold: int
    ratio: float
    at_least: int
    cooldown: float
    cooldown_cap: float
    canaries_to_close: int

    @property
    def window(self) -> int:
        """Return how many sends, up to the newest failure, are needed to decide."""
        return max(WINDOW, self.threshold, self.at_least)


@dataclass(frozen=True, slots=True)
class OpenBreaker:
    """Send nothing for `rest` seconds."""

    rest: float
    why: str


@dataclass(frozen=True, slots=True)
class CloseBreaker:
    """Close the circuit breaker."""

    why: str


@dataclass(frozen=True, slots=True)
class NextCanary:
    """Send the next canary; `successes` canaries have succeeded."""

    successes: int


BreakerStep = OpenBreaker | CloseBreaker | NextCanary


def why_breaker_opens(policy: Policy, sends: Sends) -> str | None:
    """Return why a closed circuit breaker opens; None: it stays closed.

    Only sends up to the newest failure count, at most a window of them. An unsettled send ends a row of failures, and
    counts as not failed in the ratio. `sends`: since the breaker last closed, in the order of sending.
    """
    newest = max((place for place, failed in enumerate(sends) if failed), default=None)
    if newest is None:
        return None
    counted = sends[: newest + 1][-policy.window :]
    row = _longest_row(counted)
    if row >= policy.threshold:
        return f"{row} messages in a row failed" if row > 1 else "a message failed"
    failures = sum(1 for failed in counted if failed)
    if len(counted) >= policy.at_least and failures / len(counted) >= policy.ratio:
        return f"{failures} of {len(counted)} messages failed ({failures / len(counted):.0%})"
    return None


def after_canary(policy: Policy, failed: bool | None, *, successes: int, rest: float) -> BreakerStep:  # noqa: FBT001  as a send
    """Return what a settled canary changes; `failed` is None: the result says nothing about the target.

    `successes`: successful canaries before this canary; `rest`: seconds of the cooldown before it.
    """
    if failed is None:
        return NextCanary(successes)
    if failed:
        return OpenBreaker(next_cooldown(policy, rest), f"the canary failed after a rest of {rest:g} s")
    if successes + 1 < policy.canaries_to_close:
        return NextCanary(successes + 1)
    return CloseBreaker(
        "the canary succeeded" if policy.canaries_to_close == 1 else f"{successes + 1} canaries succeeded"
    )


def next_cooldown(policy: Policy, rest: float) -> float:
    """Return the seconds of the cooldown after one of `rest` seconds (0: the breaker was closed)."""
    return min(max(rest * 2, policy.cooldown), policy.cooldown_cap)


def _longest_row(sends: Sends) -> int:
    longest = row = 0
    for failed in sends:
        row = row + 1 if failed else 0
        longest = max(longest, row)
    return longest
