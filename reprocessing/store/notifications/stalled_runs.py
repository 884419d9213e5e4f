"""Find runs that have not progressed for `long` seconds, although messages wait and nobody stopped the run."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, LiteralString

from reprocessing.store import rows
from reprocessing.store.ordering.active_runs import ACTIVE_RUNS
from reprocessing.store.ordering.blocking_runs import BLOCKING_STATE, OTHERS_LANES
from reprocessing.store.ordering.lane_head import first_letters
from reprocessing.store.ordering.why_lanes_wait import OBSTACLE, OBSTACLE_JOINS
from reprocessing.store.safety.breaker_status import BREAKER_NAME

_UNHEALTHY: Final[LiteralString] = "the target is not known to be healthy"
#: Highest number of lanes of a run that are read: the lanes that have been due for longest. Also the highest number of
#: waiting letters of a run whose lanes are read.
_LANES: Final = 100

# Reads some lanes of each active run whose first letter could be sent. Lanes with an open breaker are left out, because
# the breaker has its own incident. A run last progressed at the latest of three times: the newest attempt at these
# targets, the time from which the letters could be sent, and the last change of the run's state.
_WAITING: Final[LiteralString] = f"""
WITH seen AS (
    SELECT n.run_id, {BREAKER_NAME} AS target, newest.opened_at, greatest(head.due_at, head.captured_at) AS could_go,
           CASE WHEN h.obstacle = '{_UNHEALTHY}' THEN 'unhealthy'
                WHEN n.due_at <= redrive_now() - make_interval(secs => %(long)b::float8) THEN 'not_taken'
                WHEN n.phase = 'ready' AND n.why LIKE 'Redis does not tell%%' THEN 'rate_unknown' END AS cause
      FROM ({ACTIVE_RUNS}) active
     CROSS JOIN LATERAL (
           SELECT * FROM redrive_lane
            WHERE run_id = active.id AND due_at <= (SELECT redrive_now() + make_interval(mins => 1))
            ORDER BY due_at LIMIT {_LANES}) n {OBSTACLE_JOINS}
      JOIN redrive_target t ON t.id = b.target_id LEFT JOIN redrive_rate_class c ON c.id = b.rate_class_id
     CROSS JOIN LATERAL (SELECT {OBSTACLE} AS obstacle) h
     CROSS JOIN LATERAL (
           SELECT l.due_at, l.captured_at FROM {first_letters("l", "n.id")}) head
      LEFT JOIN LATERAL (
           SELECT a.opened_at FROM redrive_attempt a
            WHERE a.breaker_id = b.id ORDER BY a.id DESC LIMIT 1) newest ON true
     WHERE h.obstacle IN ('', '{_UNHEALTHY}')
), stalled AS (
    SELECT run_id, count(*) AS messages, mode() WITHIN GROUP (ORDER BY cause) AS cause,
           min(target) FILTER (WHERE cause IS NOT NULL) AS target, max(opened_at) AS moved, min(could_go) AS could_go
      FROM seen GROUP BY run_id
)
SELECT r.id AS run_id, r.name, r.dlq_id, d.name AS dlq, s.cause, s.target, s.messages::bigint AS messages,
       extract(epoch FROM redrive_now() - x.since)::float8 AS seconds
  FROM stalled s JOIN redrive_run r ON r.id = s.run_id JOIN redrive_dlq d ON d.id = r.dlq_id
 CROSS JOIN LATERAL (SELECT greatest(s.moved, s.could_go, r.changed_at, r.started_at) AS since) x
 WHERE s.cause IS NOT NULL AND x.since <= redrive_now() - make_interval(secs => %(long)b::float8)
 ORDER BY r.id
"""  # noqa: S608  # the inserted texts are constants

# Runs with sent messages whose outcome is open at one of the given targets, and that have sent nothing there since.
_AWAITING: Final[LiteralString] = f"""
SELECT r.id AS run_id, r.name, r.dlq_id, d.name AS dlq, u.cause, {BREAKER_NAME} AS target,
       u.unsettled AS messages, extract(epoch FROM redrive_now() - x.since)::float8 AS seconds
  FROM ({ACTIVE_RUNS}) active JOIN redrive_run r ON r.id = active.id JOIN redrive_dlq d ON d.id = r.dlq_id
  JOIN unnest(%(dlq_id)b::bigint[], %(target_id)b::bigint[], %(unsettled)b::bigint[], %(cause)b::text[],
              %(seconds)b::float8[]) AS u(dlq_id, target_id, unsettled, cause, seconds) ON u.dlq_id = r.dlq_id
  JOIN redrive_target t ON t.id = u.target_id
  JOIN redrive_breaker b ON b.target_id = t.id AND b.rate_class_id IS NULL
  LEFT JOIN redrive_rate_class c ON c.id = b.rate_class_id
  LEFT JOIN LATERAL (
       SELECT a.opened_at FROM redrive_attempt a
        WHERE a.breaker_id = b.id ORDER BY a.id DESC LIMIT 1) newest ON true
 CROSS JOIN LATERAL (
       SELECT greatest(newest.opened_at, redrive_now() - make_interval(secs => u.seconds), r.changed_at, r.started_at)
              AS since) x
 WHERE EXISTS (SELECT FROM redrive_letter l WHERE l.run_id = r.id AND l.state = 'awaiting')
   AND x.since <= redrive_now() - make_interval(secs => %(long)b::float8)
 ORDER BY r.id
"""  # noqa: S608  # the inserted texts are constants

# Runs whose letters wait behind letters of runs that send nothing. `most` letters of each run are read. A run last sent
# a letter in its newest minute with sends: to find its newest attempt, all its attempts would be read.
_BLOCKED: Final[LiteralString] = f"""
SELECT r.id AS run_id, r.name, r.dlq_id, d.name AS dlq, 'blocked' AS cause, h.target, h.messages,
       extract(epoch FROM redrive_now() - x.since)::float8 AS seconds
  FROM ({ACTIVE_RUNS}) w JOIN redrive_run r ON r.id = w.id JOIN redrive_dlq d ON d.id = r.dlq_id
 CROSS JOIN LATERAL (
       SELECT count(*) AS messages, min(b.name) AS target, max(greatest(n.due_at, b.changed_at)) AS since
         FROM (SELECT n.run_id, n.due_at FROM {OTHERS_LANES} WHERE {BLOCKING_STATE} IS NOT NULL) n
         JOIN redrive_run b ON b.id = n.run_id) h
  LEFT JOIN LATERAL (
       SELECT m.minute + interval '1 minute' AS ended FROM redrive_run_minute m
        WHERE m.run_id = r.id ORDER BY m.minute DESC LIMIT 1) newest ON true
 CROSS JOIN LATERAL (SELECT greatest(h.since, r.changed_at, r.started_at, newest.ended) AS since) x
 WHERE h.messages > 0 AND x.since <= redrive_now() - make_interval(secs => %(long)b::float8)
 ORDER BY r.id
"""  # noqa: S608  # the inserted texts are constants


@dataclass(frozen=True, slots=True)
class StalledRun:
    """A run that does not progress.

    Attributes:
        cause: not_consumed (the target was never empty, so its consumer may be stopped), not_proved (no capture could
            show that no message came back), unhealthy (the target), rate_unknown (Redis does not answer), not_taken (no
            worker sends due messages) or blocked (earlier messages are in a run that has ended or is paused).
        target: the name of the target that the run waits for; for blocked, the name of the other run.
        messages: how many messages wait: for not_consumed and not_proved, the sent messages without an outcome; for
            blocked, messages behind the other run's messages; else the first messages of lanes. At most 100 lanes or
            messages are read.
        seconds: the time since the run last progressed.
    """

    run_id: int
    name: str
    dlq_id: int
    dlq: str
    cause: str
    target: str
    messages: int
    seconds: float


@dataclass(frozen=True, slots=True)
class OverdueOutcomes:
    """Messages of a DLQ to one target (`unsettled` is their number), whose outcomes are overdue for `seconds`.

    `cause`: not_consumed or not_proved, as in `StalledRun`.
    """

    dlq_id: int
    target_id: int
    unsettled: int
    cause: str
    seconds: float


def runs_that_send_nothing(*, long: float) -> list[StalledRun]:
    """Return runs that sent nothing for `long` seconds, although some of their messages could have been sent."""
    return rows.fetch(StalledRun, _WAITING, {"long": long})


def runs_that_are_blocked(*, long: float) -> list[StalledRun]:
    """Return runs that sent nothing for `long` seconds, and wait for messages of runs that have ended or are paused."""
    return rows.fetch(StalledRun, _BLOCKED, {"long": long, "most": _LANES})


def runs_without_outcomes(overdue: Collection[OverdueOutcomes], *, long: float) -> list[StalledRun]:
    """Return runs of which some outcomes are overdue for `long` seconds, and that sent nothing to the target since."""
    if not overdue:
        return []
    return rows.fetch(StalledRun, _AWAITING, {**rows.arrays(OverdueOutcomes, overdue), "long": long})
