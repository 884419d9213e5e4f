"""Count letters of a DLQ that were captured after a run was planned or started, and are not part of the run."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from reprocessing.store import rows
from reprocessing.store.capture import capture_times
from reprocessing.store.runs.progress import MAX_COUNT

# When the run was started; if it is not started, when its letters were selected.
_BEGAN = """
SELECT r.dlq_id, coalesce(
           r.started_at, (SELECT max(v.at) FROM redrive_audit_entry v WHERE v.run_id = r.id AND v.act = 'planned'),
           r.created_at) AS at
  FROM redrive_run r WHERE r.id = %(run)b
"""

# Reads the letters by their ids, which rise with the time of capture: older letters are not read.
_ARRIVED = """
SELECT count(*) AS n FROM redrive_letter l
 WHERE l.id >= %(first)b::bigint AND l.dlq_id = %(dlq)b::bigint AND l.captured_at > %(since)b::timestamptz
"""

# Counts among the newest letters in state captured, which are read by index.
_LATELY = """
SELECT count(*) AS n FROM (
    SELECT l.captured_at FROM redrive_letter l
     WHERE l.dlq_id = (SELECT dlq_id FROM redrive_run WHERE id = %(run)b) AND l.state = 'captured'
     ORDER BY l.id DESC LIMIT %(most)b::bigint) l
 WHERE l.captured_at > (SELECT coalesce((SELECT max(v.at) FROM redrive_audit_entry v
                                          WHERE v.run_id = r.id AND v.act = 'planned'), r.created_at)
                          FROM redrive_run r WHERE r.id = %(run)b)
"""


@dataclass(frozen=True, slots=True)
class _Began:
    dlq_id: int
    at: datetime


def arrived_since_start(run: int) -> int:
    """Return how many letters of the run's DLQ were captured after the run was started (or planned, if not started)."""
    (began,) = rows.fetch(_Began, _BEGAN, {"run": run})
    first = capture_times.first_id(began.at)
    return rows.value(int, _ARRIVED, {"first": first, "dlq": began.dlq_id, "since": began.at})


def arrived_since_plan(run: int) -> int:
    """Return how many letters in state captured were captured after the plan `run` was made; at most 20,000."""
    return rows.value(int, _LATELY, {"run": run, "most": MAX_COUNT})
