"""Where breakers stand, and what they let go now."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Final, LiteralString

from reprocessing.models.safety import BreakerState
from reprocessing.store import rows

#: The name by which people know a breaker: SQL, with the target as t (see `domain.arn.name_of`) and the class as c.
NAME: Final[LiteralString] = (
    "regexp_replace(t.arn, '^arn:[^:]*:[^:]*:[^:]*:[^:]*:(function:|event-bus/)?', '') || coalesce(', ' || c.name, '')"
)

#: What a bearing is read from: the columns, and those of these targets, or of one class of letters there.
COLUMNS: Final[LiteralString] = f"""
b.id AS breaker_id, b.target_id, {NAME} AS name, c.name AS rate_class, b.state, b.since, b.why, b.epoch, b.cooldown,
b.retry_at, b.canary_until, b.ramp, CASE WHEN b.ramp_from < 1 THEN b.ramp_why ELSE '' END AS ramp_why, t.rate,
c.rate AS class_rate
"""
WHICH: Final[LiteralString] = """
  JOIN redrive_target t ON t.id = b.target_id
  LEFT JOIN redrive_rate_class c ON c.id = b.rate_class_id
 WHERE b.target_id = ANY(%(targets)b::bigint[]) AND (%(class)b::bigint IS NULL OR b.rate_class_id = %(class)b::bigint)
 ORDER BY b.target_id, c.name NULLS FIRST
"""
_BEARINGS = f"SELECT {COLUMNS} FROM redrive_breaker b {WHICH}"  # noqa: S608  # the inserted texts are constants


@dataclass(frozen=True, slots=True)
class Bearing:
    """Where a breaker stands; `name` is its target's, with that of the class of letters where it has one.

    Attributes:
        retry_at: when an open one lets its next canary go.
        canary_until: until when the slot of a half-open one is taken.
        ramp: the share of the rate that is allowed while it is closed.
        ramp_why: why that is so; empty where there is no ramp, whatever was said while there was one.
        rate: letters a second that its target takes at the most, and `class_rate` of this class at all targets; None:
            there is no limit.
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
    retry_at: datetime | None
    canary_until: datetime | None
    ramp: float
    ramp_why: str
    rate: float | None
    class_rate: float | None

    @property
    def allowed(self) -> float | None:
        """Letters a second that may go now, apart from canaries; None: as many as there are."""
        if self.state != BreakerState.CLOSED:
            return 0.0
        ramped = None if self.rate is None else self.rate * self.ramp
        return min((rate for rate in (ramped, self.class_rate) if rate is not None), default=None)

    def next_canary(self, now: datetime) -> datetime | None:
        """When the next one may go, at the earliest; None where none is needed."""
        if self.state == BreakerState.CLOSED:
            return None
        return max(self.retry_at or self.canary_until or now, now)


def bearings(targets: Collection[int], *, rate_class: int | None = None) -> list[Bearing]:
    """The breakers of these targets, or those of one class of letters there; each target's own comes first."""
    return rows.fetch(Bearing, _BEARINGS, {"targets": sorted(set(targets)), "class": rate_class})
