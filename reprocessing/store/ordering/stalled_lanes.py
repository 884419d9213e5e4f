"""Find lanes from which nothing is sent although no reason is recorded; read when beat and workers were last active.

A tick is a task that beat sends every 2 seconds. A task hint is a Celery task that names due lanes.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final, LiteralString

from reprocessing.store import rows
from reprocessing.store.ordering.active_runs import ANSWERED_RUNS
from reprocessing.store.ordering.blocking_runs import OTHERS_LANES
from reprocessing.store.ordering.why_lanes_wait import OBSTACLE, OBSTACLE_JOINS
from reprocessing.store.safety.send_limits import HEAD_MAY_BE_SENT

#: The name of beat's task in its schedule.
TICK_TASK: Final = "reprocessing.tick"


@dataclass(frozen=True, slots=True)
class StalledLanes:
    """How many lanes (`n`) of a DLQ are stalled in the same way (`how`)."""

    dlq: str
    #: overdue, abandoned (the lease has ended), held (although no letter holds them), or blocked (letters of a running
    #: run wait behind a letter of a run that has ended)
    how: str
    n: int
    since: datetime | None  #: since when the first of these lanes is stalled, if known


# Of each run, the `most` lanes that have been due for longest are read. A lane that waits for its target's rate is
# due, too. So a due lane counts as stalled only if nothing was sent with its circuit breaker for `long` seconds.
_STALLED: Final[LiteralString] = f"""
WITH asked AS (SELECT id, name FROM redrive_dlq WHERE %(dlqs)b::bigint[] IS NULL OR id = ANY(%(dlqs)b::bigint[])),
runs AS (SELECT x.id FROM redrive_run x WHERE x.state = 'running' AND x.dlq_id IN (SELECT id FROM asked))
SELECT d.name AS dlq, 'overdue' AS how, count(*) AS n, min(n.due_at) AS since
  FROM runs CROSS JOIN LATERAL (
       SELECT * FROM redrive_lane WHERE run_id = runs.id
          AND due_at <= (SELECT redrive_now() - make_interval(secs => %(long)b)) AND phase = 'ready'
        ORDER BY due_at LIMIT %(most)b) n {OBSTACLE_JOINS}
 WHERE {OBSTACLE} = '' AND NOT EXISTS (
       SELECT FROM (SELECT opened_at FROM redrive_attempt WHERE breaker_id = b.id ORDER BY id DESC LIMIT 1) newest
        WHERE newest.opened_at > redrive_now() - make_interval(secs => %(long)b))
 GROUP BY d.name
UNION ALL
SELECT a.name, 'abandoned', count(*), min(n.due_at) FROM redrive_lane n JOIN asked a ON a.id = n.dlq_id
 WHERE n.phase = 'leased' AND n.due_at <= redrive_now() - make_interval(secs => %(lost)b)
   AND n.run_id IN ({ANSWERED_RUNS})
 GROUP BY a.name
UNION ALL
SELECT a.name, 'held', count(*), NULL FROM redrive_lane n JOIN asked a ON a.id = n.dlq_id
 WHERE n.phase = 'held' AND NOT EXISTS (
       SELECT FROM redrive_letter l WHERE l.lane_id = n.id
          AND (l.state = 'parked' OR (l.state = 'waiting' AND l.route IN ('hold', 'erred'))))
 GROUP BY a.name
UNION ALL
SELECT d.name, 'blocked', count(DISTINCT n.id), min(n.due_at)
  FROM runs w CROSS JOIN LATERAL (
       SELECT n.id, n.dlq_id, n.due_at FROM {OTHERS_LANES} JOIN redrive_run x ON x.id = n.run_id
        WHERE n.phase = 'ready' AND x.state NOT IN ('running', 'paused')
          AND n.due_at <= redrive_now() - make_interval(secs => %(long)b)) n
  JOIN asked d ON d.id = n.dlq_id
 GROUP BY d.name
 ORDER BY 1, 2
"""  # noqa: S608  # the inserted texts are constants


def find_stalled(dlqs: list[int] | None, *, long: float, lost: float, most: int = 500) -> list[StalledLanes]:
    """Count the lanes of these DLQs (None: of all) that are stalled for no recorded reason, by DLQ and kind (`how`).

    A lane is overdue if it has been due for `long` seconds, while nothing was sent through the circuit breaker of its
    first letter. It is abandoned if its lease ended `lost` seconds ago. It is wrongly held if no letter holds it any
    more. It is blocked if its first letter is in an ended run and has been due for `long` seconds, and letters of a
    running run wait behind it. `most`: highest number of overdue lanes, and of letters in blocked lanes, that are read
    for a run.
    """
    values = {"dlqs": dlqs, "long": float(long), "lost": float(lost), "most": most}
    return rows.fetch(StalledLanes, _STALLED, values)


@dataclass(frozen=True, slots=True)
class BeatStatus:
    """When beat and the workers were last active, and how much work there is for them."""

    #: seconds since beat sent its latest tick, by the clock of beat's machine, so it may be below 0; None: never
    ticked: float | None
    consumed: float | None  #: seconds since a worker took a tick; None: never
    lifetime: float | None  #: seconds for which task hints are valid, doubled while none are taken; None: no hints yet
    hinted: int  #: number of lanes with a task hint that no worker has taken; `worked_on`: number of leased lanes
    worked_on: int
    needed: int  #: number of running runs plus number of DLQs in mode automatic


_BEAT: Final[LiteralString] = f"""
SELECT (SELECT extract(epoch FROM clock_timestamp() - max(last_run_at))::float8
          FROM django_celery_beat_periodictask WHERE task = %(tick)b AND enabled) AS ticked,
       (SELECT extract(epoch FROM clock_timestamp() - consumed_at)::float8
          FROM redrive_heartbeat WHERE queue = %(control)b) AS consumed,
       (SELECT lifetime FROM redrive_task_hints WHERE id = 1) AS lifetime,
       (SELECT count(*) FROM (
            SELECT FROM redrive_lane WHERE run_id IN ({ANSWERED_RUNS}) AND due_at IS NOT NULL AND stopped_at IS NULL
               AND phase = 'ready' AND hinted_until IS NOT NULL AND {HEAD_MAY_BE_SENT} LIMIT 1000) h) AS hinted,
       (SELECT count(*) FROM (
            SELECT FROM redrive_lane WHERE phase = 'leased' AND due_at > redrive_now() LIMIT 1000) w) AS worked_on,
       (SELECT count(*) FROM redrive_run WHERE state = 'running')
       + (SELECT count(*) FROM redrive_dlq WHERE mode = 'automatic') AS needed
"""  # noqa: S608  # the inserted texts are constants


def beat_status(control: str) -> BeatStatus:
    """Return when beat and the workers were last active. `control`: name of the queue to which beat sends its ticks."""
    return rows.fetch(BeatStatus, _BEAT, {"tick": TICK_TASK, "control": control})[0]
