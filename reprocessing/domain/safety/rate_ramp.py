"""The share of a target's rate that is allowed: it rises while failures stay flat, and falls when they do not."""

from __future__ import annotations

from dataclasses import dataclass

from reprocessing.domain.safety.circuit_breaker import WINDOW, Sends

#: The share of failures is flat when it is no more than this above that of the step before.
FLAT = 0.05
#: Seconds without anything settled after which nothing is known of the target any more.
IDLE = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ramp:
    """A ramp at one moment.

    Attributes:
        start: the share of the rate that it begins with, above 0 and at most 1.
        share: the share that is allowed.
        ill: the share of letters that had failed at its last step.
    """

    start: float
    share: float
    ill: float


@dataclass(frozen=True, slots=True)
class Pace:
    """The share of the rate that is allowed from now on, the share of letters that failed, and why."""

    share: float
    ill: float
    why: str


def step(ramp: Ramp, sends: Sends) -> Pace | None:
    """The next step: doubled while failures stay flat, halved when they do not; None where nothing is settled.

    A single failure neither raises nor lowers it: one of ten letters is a tenth, and perhaps the only one of thousands.

    Args:
        ramp: as it is.
        sends: as the breaker counts them; what was sent after the newest settled one is not looked at.
    """
    newest = max((place for place, failed in enumerate(sends) if failed is not None), default=None)
    if newest is None:
        return None
    counted = sends[: newest + 1][-WINDOW:]
    failures = sum(1 for failed in counted if failed)
    ill = failures / len(counted)
    seen = f"{failures} of {len(counted)} letters failed"
    if ill <= ramp.ill + FLAT:
        share = min(1.0, max(ramp.start, 2 * ramp.share))
        return Pace(share, ill, f"the whole rate: {seen}" if share == 1 else f"the rate rises: {seen}")
    if failures == 1:
        return Pace(min(1.0, max(ramp.start, ramp.share)), ramp.ill, f"as before: {seen}")
    return Pace(max(ramp.start, min(1.0, ramp.share / 2)), ill, f"the rate falls: {seen}, {ramp.ill:.0%} before")


def anew(ramp: Ramp, why: str) -> Pace:
    """Back to its start, with nothing known of the target."""
    return Pace(ramp.start, 0.0, why)
