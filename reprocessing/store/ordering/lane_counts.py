"""Count lanes (queues of one ordering key) by phase, such as leased or held, and by the reason why they wait."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final, LiteralString

from reprocessing.domain.lifecycle import LanePhase
from reprocessing.store import rows
from reprocessing.store.ordering.blocking_runs import OTHERS_LANES
from reprocessing.store.ordering.why_lanes_wait import LAST_REASON, OBSTACLE, OBSTACLE_JOINS
from reprocessing.store.safety.send_limits import EXEMPT_FROM_WAVE


@dataclass(frozen=True, slots=True)
class LaneCount:
    """How many lanes of a DLQ are in the same phase for the same reason.

    Attributes:
        is_barred: no worker may lease these lanes now, even if they are due.
        due: the time has come at which these lanes' first letters may be sent.
        why: why no worker may lease these lanes, as text for people. If `is_barred` is false: the reason that was
            recorded last; may be empty.
        due_at: when the first of these lanes is due, or, for leased lanes, when the first lease ends.
        ahead: for the counts of a run: the name of the other run whose letters come first in these lanes; empty: none.
        ahead_state: the state of that run.
    """

    dlq_id: int
    phase: str
    why: str
    is_barred: bool
    due: bool
    n: int
    due_at: datetime | None
    ahead: str = ""
    ahead_state: str = ""


_PHASES: Final = {
    LanePhase.LEASED: "leased by a worker",
    LanePhase.AWAITING: "waiting for the outcome of the first message",
    LanePhase.HELD: "held by a parked message until a person decides",
}

# Lanes with equal values are grouped first, so that `OBSTACLE`, which reads many rows, is computed once for each group.
# Either all lanes of a group are in `EXEMPT_FROM_WAVE`, or none is, so `OBSTACLE` of the lane with the lowest id is
# true of all.
_LANES: Final[LiteralString] = f"""
WITH clock AS MATERIALIZED (SELECT redrive_now() AS now)
SELECT n.dlq_id, n.phase, w.why, h.obstacle <> '' AS is_barred, n.due, sum(n.lanes)::bigint AS n,
       min(n.due_at) AS due_at, w.ahead, CASE WHEN w.ahead = '' THEN '' ELSE r.state END AS ahead_state
  FROM (SELECT min(id) AS id, dlq_id, source_id, run_id, breaker_id, phase, why, stopped_at, stopped_by, stop_reason,
               coalesce(due_at <= clock.now, false) AS due, count(*) AS lanes, min(due_at) AS due_at
          FROM ({{which}}) lane CROSS JOIN clock
         GROUP BY dlq_id, source_id, run_id, breaker_id, phase, why, stopped_at, stopped_by, stop_reason,
                  coalesce(due_at <= clock.now, false), id IN ({EXEMPT_FROM_WAVE})) n {OBSTACLE_JOINS}
 CROSS JOIN LATERAL (SELECT {OBSTACLE} AS obstacle) h
 CROSS JOIN LATERAL (
    SELECT CASE WHEN h.obstacle <> '' THEN h.obstacle ELSE {LAST_REASON} END AS why,
           CASE WHEN n.run_id <> %(run)b::bigint THEN r.name ELSE '' END AS ahead) w
 GROUP BY n.dlq_id, n.phase, w.why, is_barred, n.due, w.ahead, ahead_state
 ORDER BY n.dlq_id, n.phase, n DESC, w.why, w.ahead
"""  # noqa: S608  # the inserted texts are constants

# Every key that ever had a message has a lane; most are idle, and have no run. So the runs with lanes are found by
# steps in an index, and only the lanes of these runs are read (OFFSET 0: for a join, the planner would read all lanes).
# The other parts find lanes whose first letter has no run. A lane that waits for an outcome has a run, since its first
# letter was sent, or was released into a run.
_LANES_OF_DLQ = _LANES.format(
    which="""
WITH RECURSIVE with_lanes AS (
    (SELECT run_id FROM redrive_lane WHERE run_id IS NOT NULL ORDER BY run_id LIMIT 1)
    UNION ALL
    SELECT (SELECT o.run_id FROM redrive_lane o WHERE o.run_id > with_lanes.run_id ORDER BY o.run_id LIMIT 1)
      FROM with_lanes WHERE with_lanes.run_id IS NOT NULL
)
SELECT o.* FROM with_lanes w JOIN redrive_run r ON r.id = w.run_id
 CROSS JOIN LATERAL (SELECT * FROM redrive_lane WHERE run_id = w.run_id AND phase <> 'idle' OFFSET 0) o
 WHERE %(dlq)b::bigint IS NULL OR r.dlq_id = %(dlq)b::bigint
UNION ALL
SELECT * FROM redrive_lane
 WHERE phase = 'ready' AND run_id IS NULL AND (%(dlq)b::bigint IS NULL OR dlq_id = %(dlq)b::bigint)
UNION ALL
SELECT * FROM redrive_lane
 WHERE phase = 'leased' AND run_id IS NULL AND (%(dlq)b::bigint IS NULL OR dlq_id = %(dlq)b::bigint)
UNION ALL
SELECT * FROM redrive_lane
 WHERE phase = 'held' AND run_id IS NULL AND (%(dlq)b::bigint IS NULL OR dlq_id = %(dlq)b::bigint)"""
)
# The lanes whose first letter is a letter of the run, then the lanes in which its letters wait behind other letters.
_LANES_OF_RUN = _LANES.format(
    which=f"""
(SELECT * FROM redrive_lane WHERE phase <> 'idle' AND run_id = %(run)b LIMIT %(most)b::bigint)
UNION ALL
(SELECT DISTINCT ON (n.id) n.*
   FROM (SELECT %(run)b::bigint AS id) w CROSS JOIN LATERAL (SELECT n.* FROM {OTHERS_LANES} WHERE n.phase <> 'idle') n)
LIMIT %(most)b::bigint"""  # noqa: S608  # the inserted text is a constant
)


def lane_counts(dlq: int | None = None) -> list[LaneCount]:
    """Count the lanes of this DLQ (None: of all DLQs) that have unfinished letters, by phase and by why they wait."""
    return rows.fetch(LaneCount, _LANES_OF_DLQ, {"dlq": dlq, "run": None})


def lane_counts_of_run(run: int, *, most: int) -> list[LaneCount]:
    """Count the lanes in which a run has unfinished letters, by phase, by why they wait, and by the first letter's run.

    At most `most` lanes are counted. To find lanes whose first letter is in another run, up to `most` letters are read.
    """
    return rows.fetch(LaneCount, _LANES_OF_RUN, {"run": run, "most": most})


def describe_lanes(counted: LaneCount) -> str:
    """Return, as text for people, why these lanes wait."""
    why = describe_first(counted)
    return f"a message of the run {counted.ahead} comes first ({why})" if counted.ahead else why


def describe_first(counted: LaneCount) -> str:
    """Return, as text for people, why the first messages of these lanes wait."""
    if counted.is_barred or (counted.phase == LanePhase.HELD and counted.why.startswith("rule ")):
        return counted.why
    if counted.phase == LanePhase.READY and not counted.why:
        return "due: waiting for a worker" if counted.due else "waiting for the first message's next attempt"
    return _PHASES.get(LanePhase(counted.phase), counted.why)
