"""Decide when a circuit breaker opens, and whether it closes after a canary (a message that tests the target).

`Sends` has one value for each message sent to the target, in the order of sending: `True` if the message failed,
`False` if it succeeded, `None` if its outcome is not known. Outcomes that say nothing about the target are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

Sends = Sequence[bool | None]

#: Number of the newest sends from which the failure ratio is computed, unless the breaker's policy needs more.
WINDOW = 100
#: If a canary's outcome is not known an hour after its deadline, another canary is sent.
CANARY_OVERDUE = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The settings of a circuit breaker.

    Attributes:
        threshold: number of failures in a row that open the breaker.
        ratio: share of failures among the newest sends (`window`) that opens the breaker.
        at_least: min number of sends for the ratio; with fewer sends, only `threshold` opens the breaker.
        cooldown: seconds for which nothing is sent; doubled by each failed canary, up to `cooldown_cap`.
        canaries_to_close: number of successful canaries (test sends) that close the breaker.
    """

    threshold: int
    ratio: float
    at_least: int
    cooldown: float
    cooldown_cap: float
    canaries_to_close: int

    @property
    def window(self) -> int:
        """Return how many of the newest sends decide whether the breaker opens, up to the newest failure."""
        return max(WINDOW, self.threshold, self.at_least)


@dataclass(frozen=True, slots=True)
class OpenBreaker:
    """Open the circuit breaker: send nothing for `cooldown` seconds."""

    cooldown: float
    why: str


@dataclass(frozen=True, slots=True)
class CloseBreaker:
    """Close the circuit breaker."""

    why: str


@dataclass(frozen=True, slots=True)
class NextCanary:
    """Keep the circuit breaker half open, and send the next canary (test message). `successes` canaries succeeded."""

    successes: int


BreakerStep = OpenBreaker | CloseBreaker | NextCanary


def why_breaker_opens(policy: Policy, sends: Sends) -> str | None:
    """Return why a closed circuit breaker opens; None if it stays closed.

    `sends`: the sends since the breaker last closed. The last `policy.window` sends up to the newest failure count. A
    send whose outcome is not known interrupts a series of failures, and counts as not failed in the ratio.
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


def after_canary(policy: Policy, failed: bool | None, *, successes: int, last_cooldown: float) -> BreakerStep:  # noqa: FBT001  as a send
    """Return what a half-open circuit breaker does after a canary.

    `failed`: whether the canary failed; None: its outcome says nothing about the target. `successes`: how many canaries
    succeeded before. `last_cooldown`: seconds of the last cooldown, in which nothing was sent.
    """
    if failed is None:
        return NextCanary(successes)
    if failed:
        return OpenBreaker(
            next_cooldown(policy, last_cooldown), f"the canary failed after a cooldown of {last_cooldown:g} s"
        )
    if successes + 1 < policy.canaries_to_close:
        return NextCanary(successes + 1)
    return CloseBreaker(
        "the canary succeeded" if policy.canaries_to_close == 1 else f"{successes + 1} canaries succeeded"
    )


def next_cooldown(policy: Policy, last_cooldown: float) -> float:
    """Return how many seconds nothing is sent. `last_cooldown`: in seconds; 0: the breaker was closed."""
    return min(max(last_cooldown * 2, policy.cooldown), policy.cooldown_cap)


def _longest_row(sends: Sends) -> int:
    longest = row = 0
    for failed in sends:
        row = row + 1 if failed else 0
        longest = max(longest, row)
    return longest
