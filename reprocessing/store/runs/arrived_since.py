"""Count letters of a DLQ that were captured after a run was planned or started, and are not part of the run."""

from __future__ import annotations

from reprocessing.store import rows
from reprocessing.store.runs.progress import MAX_COUNT

# Counts the letters captured after the run was started; if it is not started, after its letters were selected.
_ARRIVED = """
SELECT count(*) AS n FROM redrive_run r JOIN redrive_letter l ON l.dlq_id = r.dlq_id
 WHERE r.id = %(run)b
   AND l.captured_at > coalesce(
       r.started_at, (SELECT max(v.at) FROM redrive_audit_entry v WHERE v.run_id = r.id AND v.act = 'planned'),
              r.created_at)
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


def arrived_since_start(run: int) -> int:
    """Return how many letters of the run's DLQ were captured after the run was started (or planned, if not started)."""
    return rows.value(int, _ARRIVED, {"run": run})


def arrived_since_plan(run: int) -> int:
    """Return how many letters in state captured were captured after the plan `run` was made; at most 20,000."""
    return rows.value(int, _LATELY, {"run": run, "most": MAX_COUNT})
