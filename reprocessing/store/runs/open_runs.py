"""Read the runs that have not ended, with the number of their unfinished letters."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from reprocessing.store import rows
from reprocessing.store.rights.visible_dlqs import EVERY_DLQ, VisibleDlqs


@dataclass(frozen=True, slots=True)
class OpenRun:
    """A run that has not ended.

    Attributes:
        unfinished: unfinished letters, counted up to the parameter `most` of `open_runs`.
        why: who stopped the run, and why.
        wave_size: how many letters the open wave has; None: all remaining letters.
        sent: number of attempts in the open wave; 0 (not counted) if the wave has no size and `most` is given.
    """

    id: int
    dlq_id: int
    name: str
    kind: str
    state: str
    asked_by: str
    started_at: datetime | None
    unfinished: int
    why: str
    wave: int | None
    wave_size: int | None
    sent: int


@dataclass(frozen=True, slots=True)
class StartedRun:
    """A run that is running or paused.

    `unfinished`: number of unfinished letters, counted up to the parameter `most` of `started_runs`. They are counted
    only if a run of the DLQ is paused, or if this is the automatic run of a DLQ that is not in mode automatic. Else
    `unfinished` is 0.
    """

    id: int
    dlq_id: int
    kind: str
    state: str
    unfinished: int


_STARTED = """
SELECT r.id, r.dlq_id, r.kind, r.state,
       CASE WHEN bool_or(r.state = 'paused') OVER (PARTITION BY r.dlq_id)
              OR (r.kind = 'automatic' AND d.mode <> 'automatic') THEN (
            SELECT count(*) FROM (
                   SELECT FROM redrive_letter l
                    WHERE l.run_id = r.id AND l.state IN ('captured', 'waiting', 'sending', 'awaiting')
                    LIMIT %(most)b::bigint) u) ELSE 0 END AS unfinished
  FROM redrive_run r JOIN redrive_dlq d ON d.id = r.dlq_id
 WHERE r.state IN ('running', 'paused') AND (%(dlqs)b::bigint[] IS NULL OR r.dlq_id = ANY(%(dlqs)b::bigint[]))
 ORDER BY r.dlq_id, r.id
"""

_WORKING = """
SELECT r.id, r.dlq_id, r.name, r.kind, r.state, r.asked_by, r.started_at,
       (SELECT count(*) FROM (
            SELECT FROM redrive_letter l
             WHERE l.run_id = r.id AND l.state IN ('captured', 'waiting', 'sending', 'awaiting')
             LIMIT %(most)b::bigint) u) AS unfinished,
       r.why, w.no AS wave, w.size AS wave_size,
       CASE WHEN w.size IS NULL AND %(most)b::bigint IS NOT NULL THEN 0
            ELSE (SELECT count(*) FROM redrive_attempt a WHERE a.wave_id = w.id) END AS sent
  FROM redrive_run r LEFT JOIN redrive_wave w ON w.run_id = r.id AND w.settled_at IS NULL
 WHERE r.state NOT IN ('finished', 'aborted') AND (%(dlq)b::bigint IS NULL OR r.dlq_id = %(dlq)b::bigint)
 ORDER BY r.dlq_id, r.id
"""


def open_runs(dlq: int | None = None, *, most: int | None = None) -> list[OpenRun]:
    """Return the runs of this DLQ (None: of all) that have not ended.

    The unfinished letters of each run are counted up to `most`; None: all are counted.
    """
    return rows.fetch(OpenRun, _WORKING, {"dlq": dlq, "most": most})


def started_runs(*, most: int, seen: VisibleDlqs = EVERY_DLQ) -> list[StartedRun]:
    """Return the running and paused runs of the DLQs that a person may see (`seen`).

    Unfinished letters are counted up to `most` for each run (see `StartedRun`).
    """
    return rows.fetch(StartedRun, _STARTED, {"most": most, "dlqs": seen.array})
