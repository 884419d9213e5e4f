"""SQL and functions that limit sends: by circuit breakers, health checks, and full waves."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, LiteralString

from reprocessing.store import rows

#: Targets with a health check whose result is not healthy, or too old.
UNHEALTHY_TARGETS: Final[LiteralString] = """
SELECT h.target_id FROM redrive_health_check h
 WHERE h.verdict <> 'healthy' OR h.checked_at IS NULL
    OR h.checked_at <= redrive_now() - make_interval(secs => h.max_age)
"""

#: Breakers that permit no send now: open breakers, half-open breakers that wait for the outcome of a canary, and
#: breakers of unhealthy targets.
BLOCKED_BREAKERS: Final[LiteralString] = f"""
SELECT b.id FROM redrive_breaker b
 WHERE (b.state = 'open' AND b.retry_at > redrive_now()) OR (b.state = 'half_open' AND b.canary_until > redrive_now())
    OR b.target_id IN ({UNHEALTHY_TARGETS})
"""  # noqa: S608  # the inserted text is a constant

#: The attempts of a wave w that has a size (at most 100). The columns are compared as a row, so that a planner
#: with old statistics reads the attempts in the order of the index.
ATTEMPTS_OF_WAVE: Final[LiteralString] = """
SELECT * FROM (SELECT * FROM redrive_attempt WHERE wave_id IS NOT NULL AND (wave_id, id) >= (w.id, 0)
                ORDER BY wave_id, id LIMIT 100) tried
 WHERE tried.wave_id = w.id
"""

#: Runs whose wave is full. The last wave has no size, and is never full.
FULL_WAVE_RUNS: Final[LiteralString] = f"""
SELECT w.run_id FROM redrive_wave w
 WHERE w.settled_at IS NULL AND w.size IS NOT NULL AND w.size <= (SELECT count(*) FROM ({ATTEMPTS_OF_WAVE}) counted)
"""  # noqa: S608  # the inserted text is a constant

#: True of a closed attempt a that is neither a success nor a failure.
IS_INCONCLUSIVE: Final[LiteralString] = (
    "(a.outcome IN ('not_sent', 'unknown', 'silent') AND a.counts_as_failure IS NULL AND a.returned_at IS NULL)"
)

#: Lanes from which letters are sent although the wave is full. The first attempt of the lane's letter had no result, so
#: the wave waits for the letter's next attempt (see `waves`).
EXEMPT_FROM_WAVE: Final[LiteralString] = f"""
SELECT l.lane_id FROM redrive_wave w
 CROSS JOIN LATERAL ({ATTEMPTS_OF_WAVE}) a
 CROSS JOIN LATERAL (SELECT x.lane_id, x.state FROM redrive_letter x WHERE x.id = a.letter_id OFFSET 0) l
 WHERE w.settled_at IS NULL AND w.size IS NOT NULL AND l.state = 'waiting' AND {IS_INCONCLUSIVE}
"""  # noqa: S608  # the inserted text is the constant above

#: True of a due lane whose head may be sent. If the head's breaker is not known, the lane is leased once to find out.
HEAD_MAY_BE_SENT: Final[LiteralString] = f"""
(breaker_id IS NULL OR breaker_id NOT IN ({BLOCKED_BREAKERS}))
AND (run_id NOT IN ({FULL_WAVE_RUNS}) OR id IN ({EXEMPT_FROM_WAVE}))
"""  # the inserted text is constant

# Locks breakers, waves and lanes before the intent to send (`replay.intent`), in a statement of its own. So only one
# transaction at a time counts the letters of a half-open breaker, of a wave with a size, or at a target whose letters
# can return. The lanes are locked last, so that the intent sees a letter that was put before a head.
_LOCK = """
WITH breakers AS (
    SELECT b.id FROM redrive_breaker b JOIN redrive_target t ON t.id = b.target_id
     WHERE b.target_id IN (SELECT target_id FROM redrive_letter WHERE id = ANY(%(letters)b::bigint[]))
       AND (b.state <> 'closed' OR t.proof <> 'accepted')
     ORDER BY b.id FOR UPDATE OF b
), waves AS (
    SELECT w.id FROM redrive_wave w
     WHERE w.settled_at IS NULL AND w.size IS NOT NULL
       AND w.run_id IN (SELECT run_id FROM redrive_lane WHERE id = ANY(%(lanes)b::bigint[]))
     ORDER BY w.id FOR UPDATE
), brakes AS (
    SELECT (SELECT count(*) FROM breakers) + (SELECT count(*) FROM waves) AS n
), ours AS (
    SELECT n.id FROM redrive_lane n
      JOIN unnest(%(lanes)b::bigint[], %(fences)b::bigint[]) AS m(lane_id, fence) ON n.id = m.lane_id
     WHERE n.fence = m.fence AND (SELECT brakes.n FROM brakes) >= 0
     ORDER BY n.id FOR UPDATE OF n
)
SELECT count(*) AS n FROM ours
"""

_LIMITS = f"""
WITH target AS (
    SELECT t.id, t.proof, (SELECT h.detail FROM redrive_health_check h
                            WHERE h.target_id = t.id AND h.target_id IN ({UNHEALTHY_TARGETS})
                            ORDER BY h.verdict = 'healthy', h.id LIMIT 1) AS why_unhealthy,
           CASE WHEN t.proof <> 'accepted' THEN (
                SELECT count(*) FROM redrive_attempt a WHERE a.target_id = t.id AND a.closed_at IS NULL)
                ELSE 0 END AS unsettled
      FROM redrive_target t WHERE t.id = ANY(%(targets)b::bigint[])
)
SELECT b.id AS breaker_id, t.id AS target_id, b.rate_class_id, b.state, b.epoch, t.why_unhealthy, t.unsettled, b.ramp,
       coalesce(extract(epoch FROM coalesce(b.retry_at, b.canary_until) - redrive_now()), 0)::float8 AS canary_wait,
       b.ramp_from < 1 AND b.ramp_at + make_interval(secs => b.ramp_every) <= redrive_now() AS step_due,
       c.rate AS class_rate, c.burst AS class_burst,
       coalesce((SELECT version FROM redrive_rulebook WHERE id = 1), 0) AS rules
  FROM target t JOIN redrive_breaker b ON b.target_id = t.id
  LEFT JOIN redrive_rate_class c ON c.id = b.rate_class_id
"""  # noqa: S608  # the inserted text is a constant

# A new breaker of a rate class gets the settings of its target's own breaker, and starts its ramp-up.
_BREAKERS = """
INSERT INTO redrive_breaker (target_id, rate_class_id, threshold, ratio, at_least, cooldown, cooldown_cap,
       canaries_to_close,
                             ramp_from, ramp_every, ramp)
SELECT b.target_id, w.rate_class_id, b.threshold, b.ratio, b.at_least, b.cooldown, b.cooldown_cap, b.canaries_to_close,
       b.ramp_from, b.ramp_every, b.ramp_from
  FROM unnest(%(targets)b::bigint[], %(classes)b::bigint[]) AS w(target_id, rate_class_id)
  JOIN redrive_breaker b ON b.target_id = w.target_id AND b.rate_class_id IS NULL
 ORDER BY 1, 2
ON CONFLICT (target_id, rate_class_id) DO NOTHING
"""


@dataclass(frozen=True, slots=True)
class SendLimit:
    """The limits on sends that one circuit breaker and its target set now."""

    breaker_id: int
    target_id: int
    rate_class_id: int | None
    state: str
    epoch: int
    why_unhealthy: str | None  #: why the target is not healthy; None: it is healthy, or has no health check
    unsettled: int  #: letters at the target without an outcome; 0 if the target's outcome is `accepted`
    ramp: float  #: the share of the rate that is allowed
    canary_wait: float  #: seconds until a canary may be sent; 0 or less: now
    step_due: bool  #: whether the next step of the ramp-up is due
    class_rate: float | None  #: the rate class's limit (letters/s); `class_burst`: letters at once; None: no limit
    class_burst: float | None
    rules: int  #: the rulebook's version

    @property
    def on_trial(self) -> bool:
        """Return whether only canaries (single letters) may be sent, because the breaker is not closed."""
        return self.state != "closed"

    @property
    def why_blocked(self) -> str:
        """Return, as text for people, why no letter may be sent; empty: letters may be sent."""
        if self.why_unhealthy is not None:
            return f"its target is not healthy: {self.why_unhealthy or 'its health is unknown'}"
        if self.on_trial and self.canary_wait > 0:
            canary = "the circuit breaker is half open, and its canary has no outcome yet"
            return "the circuit breaker is open" if self.state == "open" else canary
        return ""


def read_limits(targets: Collection[int]) -> list[SendLimit]:
    """Return the limits that apply to these targets now, one for each of their breakers."""
    return rows.fetch(SendLimit, _LIMITS, {"targets": list(targets)}) if targets else []


def lock_for_intent(letters: Collection[int], lanes: Collection[int], fences: Collection[int]) -> None:
    """Lock these letters' lanes, and the breakers and waves that limit sends, before attempts are committed."""
    rows.execute(_LOCK, {"letters": list(letters), "lanes": list(lanes), "fences": list(fences)})


def make_breakers(pairs: Collection[tuple[int, int]]) -> None:
    """Create the circuit breakers that are missing, for these pairs of ids (target, rate class)."""
    some = sorted(pairs)
    rows.execute(
        _BREAKERS, {"targets": [target for target, _ in some], "classes": [rate_class for _, rate_class in some]}
    )
