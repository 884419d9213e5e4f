"""Read the states of circuit breakers, and the rates that they allow now."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Final, LiteralString

from reprocessing.models.safety import BreakerState
from reprocessing.store import rows

#: SQL for a breaker's name: the name of its target t (see `domain.message.arn.name_of`) and of its rate class c.
BREAKER_NAME: Final[LiteralString] = (
    "regexp_replace(t.arn, '^arn:[^:]*:[^:]*:[^:]*:[^:]*:(function:|event-bus/)?', '') || coalesce(', ' || c.name, '')"
)

#: The columns of a `BreakerStatus`. `OF_TARGETS`: joins, condition and order for the breakers of given targets.
STATUS_COLUMNS: Final[LiteralString] = f"""
b.id AS breaker_id, b.target_id, {BREAKER_NAME} AS name, c.name AS rate_class, b.state, b.since, b.why, b.epoch,
       b.cooldown,
b.retry_at, b.canary_until, b.ramp, CASE WHEN b.ramp_from < 1 THEN b.ramp_reason ELSE '' END AS ramp_reason, t.rate,
c.rate AS class_rate
"""
OF_TARGETS: Final[LiteralString] = """
  JOIN redrive_target t ON t.id = b.target_id
  LEFT JOIN redrive_rate_class c ON c.id = b.rate_class_id
 WHERE b.target_id = ANY(%(targets)b::bigint[]) AND (%(class)b::bigint IS NULL OR b.rate_class_id = %(class)b::bigint)
 ORDER BY b.target_id, c.name NULLS FIRST
"""
_STATUSES = f"SELECT {STATUS_COLUMNS} FROM redrive_breaker b {OF_TARGETS}"  # noqa: S608  # the inserted texts are constants


@dataclass(frozen=True, slots=True)
class BreakerStatus:
    """The state of a circuit breaker.

    `name`: the name of its target, followed by the name of its rate class if it has one.
    """

    breaker_id: int
    target_id: int
    name: str
    rate_class: str | None
    state: str
    since: datetime
    why: str
    epoch: int
    cooldown: float
    retry_at: datetime | None  #: when the next canary may be sent, while the breaker is open
    canary_until: datetime | None  #: until when a half-open breaker waits for its canary's outcome
    ramp: float  #: the share of the rate that is allowed while the breaker is closed
    ramp_reason: str  #: why `ramp` has this value; empty if there is no ramp-up
    rate: float | None  #: the target's rate limit (letters/s); `class_rate`: the rate class's limit; None: no limit
    class_rate: float | None

    @property
    def allowed(self) -> float | None:
        """Return how many letters per second may be sent now, apart from canaries; None: no limit."""
        if self.state != BreakerState.CLOSED:
            return 0.0
        ramped = None if self.rate is None else self.rate * self.ramp
        return min((rate for rate in (ramped, self.class_rate) if rate is not None), default=None)

    def next_canary(self, now: datetime) -> datetime | None:
        """Return the earliest time at which the next canary may be sent; None: no canary is needed."""
        if self.state == BreakerState.CLOSED:
            return None
        return max(self.retry_at or self.canary_until or now, now)


def breaker_statuses(targets: Collection[int], *, rate_class: int | None = None) -> list[BreakerStatus]:
    """Return the breakers of these targets. For each target, its own breaker comes before those of rate classes.

    `rate_class`: id of a rate class; only the breakers for its letters are returned. None: all breakers.
    """
    return rows.fetch(BreakerStatus, _STATUSES, {"targets": sorted(set(targets)), "class": rate_class})
