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

# Reads letters by their ids, which rise with the time of capture: older letters are not read. Letters of other DLQs
# have ids in between, and no index has a DLQ's letters by id, so the newest `most` letters of all DLQs are read.
_ARRIVED = """
SELECT count(*) FILTER (WHERE l.dlq_id = %(dlq)b::bigint AND l.captured_at > %(since)b::timestamptz) AS n,
       count(*) = %(most)b::bigint AND min(l.captured_at) > %(since)b::timestamptz AS is_minimum
  FROM (SELECT dlq_id, captured_at FROM redrive_letter WHERE id >= %(first)b::bigint
         ORDER BY id DESC LIMIT %(most)b::bigint) l
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
class Arrived:
    """How many letters of a DLQ were captured since a run began. `is_minimum`: there may be more, not counted."""

    n: int
    is_minimum: bool


@dataclass(frozen=True, slots=True)
class _Began:
    dlq_id: int
    at: datetime


def arrived_since_start(run: int) -> Arrived:
    """Return how many letters of the run's DLQ were captured after the run was started (or planned, if not started).

    They are counted among the newest 20,000 letters of all DLQs.
    """
    (began,) = rows.fetch(_Began, _BEGAN, {"run": run})
    asked = {"first": capture_times.first_id(began.at), "dlq": began.dlq_id, "since": began.at, "most": MAX_COUNT}
    return rows.fetch(Arrived, _ARRIVED, asked)[0]


def arrived_since_plan(run: int) -> int:
    """Return how many letters in state captured were captured after the plan `run` was made; at most 20,000."""
    return rows.value(int, _LATELY, {"run": run, "most": MAX_COUNT})
