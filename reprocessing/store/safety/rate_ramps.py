"""Raise or lower the share of a target's rate that is allowed (the ramp-up), by the outcomes of attempts.

A repeated call changes nothing. If a process is killed before its call, a later call does the work.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from reprocessing.domain.safety import circuit_breaker, rate_ramp
from reprocessing.domain.safety.rate_ramp import Ramp, RampStep
from reprocessing.store import rows
from reprocessing.store.safety import breaker_window
from reprocessing.store.safety.breaker_window import Window

_DUE = """
SELECT b.id, b.epoch, b.ramp_from AS start, b.ramp AS share, b.ramp_failure_ratio AS failure_ratio, b.ramp_at,
       b.ramp > b.ramp_from
       AND extract(epoch FROM redrive_now() - b.ramp_at) >= greatest(%(idle)b::float8, 2 * b.ramp_every) AS idle
  FROM redrive_breaker b
 WHERE b.id = ANY(%(ids)b::bigint[]) AND b.state = 'closed' AND b.ramp_from < 1
   AND extract(epoch FROM redrive_now() - b.ramp_at) >= b.ramp_every
 ORDER BY b.id
"""

_CLIMB = """
UPDATE redrive_breaker b
   SET ramp = greatest(m.ramp, b.ramp_from), ramp_failure_ratio = m.failure_ratio, ramp_reason = m.why,
          ramp_at = redrive_now()
  FROM unnest(%(id)b::bigint[], %(epoch)b::bigint[], %(ramp_at)b::timestamptz[], %(shares)b::float8[],
              %(failure_ratios)b::float8[], %(whys)b::text[]) AS m(id, epoch, at, ramp, failure_ratio, why)
 WHERE b.id = m.id AND b.epoch = m.epoch AND b.state = 'closed' AND b.ramp_at = m.at
"""

# Resets ramp-ups that had no step for a while. Steps are stored even at the full rate, so an old `ramp_at` means idle.
_REST = """
UPDATE redrive_breaker
   SET ramp = ramp_from, ramp_failure_ratio = 0, ramp_at = redrive_now(), ramp_reason = %(why)b::text
 WHERE (%(ids)b::bigint[] IS NULL OR id = ANY(%(ids)b::bigint[])) AND state = 'closed' AND ramp > ramp_from
   AND extract(epoch FROM redrive_now() - ramp_at) >= greatest(%(idle)b::float8, 2 * ramp_every)
"""

_IDLE_WHY = f"from its start: nothing had been settled for {rate_ramp.IDLE_SECONDS / 60:g} minutes before"


@dataclass(frozen=True, slots=True)
class _Due(Ramp):
    id: int
    epoch: int
    ramp_at: datetime
    idle: bool


def step_due_ramps(ids: Collection[int]) -> int:
    """Raise or lower the allowed share of the rate (a ramp-up step) of those breakers for which it is time.

    Return how many were changed. It is time for a step when the interval of the ramp-up is over, and an attempt got its
    outcome since the last step. An idle ramp-up restarts (see `reset_idle_ramps`).
    """
    due = rows.fetch(_Due, _DUE, {"ids": sorted(set(ids)), "idle": rate_ramp.IDLE_SECONDS})
    if not due:
        return 0
    sizes = [circuit_breaker.WINDOW] * len(due)
    seen = breaker_window.windows([row.id for row in due], [row.epoch for row in due], sizes, settled=True)
    steps = [(row, pace) for row in due if (pace := _next_step(row, seen[row.id]))]
    if not steps:
        return 0
    values = {
        **rows.arrays(_Due, [row for row, _ in steps]),
        "shares": [pace.share for _, pace in steps],
        "failure_ratios": [pace.failure_ratio for _, pace in steps],
        "whys": [pace.why for _, pace in steps],
    }
    return rows.execute(_CLIMB, values)


def _next_step(row: _Due, seen: Window) -> RampStep | None:
    if row.idle:
        return rate_ramp.restart_ramp(row, _IDLE_WHY)
    if seen.settled_at is None or seen.settled_at <= row.ramp_at:
        return None
    return rate_ramp.next_step(row, seen.sends)


def reset_idle_ramps(ids: Collection[int] | None = None) -> int:
    """Reset the idle ramp-ups of these breakers (None: of all) to their start; return how many. Call it before sends.

    A ramp-up is idle if it had no step for 5 minutes (`IDLE_SECONDS`), or for two step intervals if these are longer.
    """
    values = {"ids": None if ids is None else sorted(set(ids)), "idle": rate_ramp.IDLE_SECONDS, "why": _IDLE_WHY}
    return rows.execute(_REST, values)
