"""Decide the ramp-up: which share of a target's rate is allowed. Steps double the share, or halve it after failures."""

from __future__ import annotations

from dataclasses import dataclass

from reprocessing.domain.safety.circuit_breaker import WINDOW, Sends

#: Failures have increased if their share of the sends rose by more than 0.05 since the last step.
FLAT_RISE = 0.05
#: After so many seconds without a known outcome, the ramp-up begins again.
IDLE_SECONDS = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ramp:
    """The state of a target's ramp-up.

    Attributes:
        start: the share of the rate with which a ramp-up begins, above 0 and at most 1.
        share: the share of the rate that is allowed now.
        failure_ratio: the share of sends that had failed at the last step.
    """

    start: float
    share: float
    failure_ratio: float


@dataclass(frozen=True, slots=True)
class RampStep:
    """A step of a ramp-up: the share of the rate that is now allowed, the share of failed sends, and the reason."""

    share: float
    failure_ratio: float
    why: str


def next_step(ramp: Ramp, sends: Sends) -> RampStep | None:
    """Return the next step of a ramp-up; None: there is no step, because no outcome is known.

    The step doubles the share of the rate. If a larger share of sends failed than before, it halves the share. After a
    single failure, the share stays as it is. Sends after the newest send with a known outcome are ignored.
    """
    newest = max((place for place, failed in enumerate(sends) if failed is not None), default=None)
    if newest is None:
        return None
    counted = sends[: newest + 1][-WINDOW:]
    failures = sum(1 for failed in counted if failed)
    failure_ratio = failures / len(counted)
    counts = f"{failures} of {len(counted)} messages failed"
    if failure_ratio <= ramp.failure_ratio + FLAT_RISE:
        share = min(1.0, max(ramp.start, 2 * ramp.share))
        allowed = "the full rate is allowed" if share == 1 else "the rate rises"
        return RampStep(share, failure_ratio, f"{allowed}: {counts}")
    if failures == 1:
        return RampStep(min(1.0, max(ramp.start, ramp.share)), ramp.failure_ratio, f"the rate stays: {counts}")
    falls = f"slower now: {counts}; {100 * ramp.failure_ratio:.0f} % failed before"
    return RampStep(max(ramp.start, min(1.0, ramp.share / 2)), failure_ratio, falls)


def restart_ramp(ramp: Ramp, why: str) -> RampStep:
    """Return the first step of a ramp-up, with the start share and no failures. `why`: the reason of the restart."""
    return RampStep(ramp.start, 0.0, why)
