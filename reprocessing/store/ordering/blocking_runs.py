"""Find runs that block another run: their messages come first in lanes in which the other run's messages wait.

A lane's messages are sent in order. If the first message is in a run that is planned, paused or has ended, nothing is
sent from the lane.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, LiteralString

from reprocessing.store import rows

# For a lane n: the state of its run, if the run sends nothing and no other run will take over its letters; else null.
# In mode automatic, the automatic run takes over the letters of ended and planned runs, unless it is paused.
BLOCKING_STATE: Final[LiteralString] = """
(SELECT x.state FROM redrive_run x JOIN redrive_dlq y ON y.id = x.dlq_id
  WHERE x.id = n.run_id AND n.phase = 'ready' AND x.state <> 'running'
    AND (x.state = 'paused' OR y.mode <> 'automatic' OR EXISTS (
         SELECT FROM redrive_run s WHERE s.dlq_id = y.id AND s.kind = 'automatic' AND s.state = 'paused')))
"""

#: The lanes of other runs in which up to `most` waiting letters of the run w are, a row for each letter. OFFSET 0 keeps
#: the planner from reading all lanes of the other runs.
OTHERS_LANES: Final[LiteralString] = """
(SELECT lane_id FROM redrive_letter WHERE run_id = w.id AND state = 'waiting' LIMIT %(most)b::bigint) l
 CROSS JOIN LATERAL (SELECT * FROM redrive_lane WHERE id = l.lane_id AND run_id <> w.id OFFSET 0) n
"""

_BLOCKING = f"""
SELECT x.id, x.name, x.state, count(DISTINCT n.id) AS lanes, count(*) AS messages
  FROM (SELECT %(run)b::bigint AS id) w CROSS JOIN LATERAL (
        SELECT n.* FROM {OTHERS_LANES} WHERE {BLOCKING_STATE} IS NOT NULL) n
  JOIN redrive_run x ON x.id = n.run_id
 GROUP BY x.id ORDER BY x.id
"""  # noqa: S608  # the inserted texts are constants


@dataclass(frozen=True, slots=True)
class BlockingRun:
    """A run that blocks another run: it sends nothing, and its messages come first in lanes of the other run.

    `lanes`: the number of these lanes. `messages`: the number of the other run's messages that wait in these lanes.
    """

    id: int
    name: str
    state: str
    lanes: int
    messages: int


def blocking_runs(run: int, *, most: int) -> list[BlockingRun]:
    """Return the runs that block this run. `most`: highest number of waiting letters of this run that are checked."""
    return rows.fetch(BlockingRun, _BLOCKING, {"run": run, "most": most})
