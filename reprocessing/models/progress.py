"""How runs go: what of their letters came to what, and which of them have come to their end."""

from __future__ import annotations

from dataclasses import dataclass

from reprocessing.models import rows

# A drain has ended when none of its letters is under way, or still to be enlisted.
_LOCK = "SELECT id FROM redrive_run WHERE kind = 'drain' AND state = 'running' ORDER BY id FOR UPDATE SKIP LOCKED"

# Asked after the runs are locked: whoever gives one of them a letter locks it, too.
_FINISH = """
UPDATE redrive_run r SET state = 'finished', finished_at = redrive_now()
 WHERE r.id = ANY(%(runs)b::bigint[]) AND r.kind = 'drain' AND r.state = 'running'
   AND NOT EXISTS (SELECT FROM redrive_letter l WHERE l.run_id = r.id
                      AND l.state IN ('captured', 'waiting', 'sending', 'awaiting'))
"""

_TALLY = """
SELECT count(*) AS letters,
       count(*) FILTER (WHERE state = 'delivered' AND NOT presumed) AS delivered,
       count(*) FILTER (WHERE state = 'delivered' AND presumed) AS presumed,
       count(*) FILTER (WHERE state = 'parked') AS parked,
       count(*) FILTER (WHERE state = 'duplicate') AS closed_as_duplicate,
       count(*) FILTER (WHERE state = 'discarded') AS discarded,
       count(*) FILTER (WHERE state IN ('captured', 'waiting', 'sending')) AS waiting,
       count(*) FILTER (WHERE state = 'awaiting') AS awaiting,
       count(*) FILTER (WHERE state = 'waiting' AND EXISTS (
           SELECT FROM redrive_lane n WHERE n.id = lane_id AND n.phase = 'held')) AS held,
       (SELECT count(*) FROM redrive_attempt a
         WHERE a.run_id = %(run)b AND (a.outcome IN ('returned', 'refused', 'unknown') OR a.returned_at IS NOT NULL))
       AS failed_attempts
  FROM redrive_letter WHERE run_id = %(run)b
"""

_RUNNING = "SELECT id FROM redrive_run WHERE dlq_id = %(dlq)b AND state = 'running' ORDER BY id"


@dataclass(frozen=True, slots=True)
class Tally:
    """What a run's letters have come to; `delivered` and `presumed` are disjoint.

    `held` of those that are waiting do so behind a parked letter: they go on when a person decides about that one.
    """

    letters: int
    delivered: int
    presumed: int
    parked: int
    closed_as_duplicate: int
    discarded: int
    waiting: int
    awaiting: int
    held: int
    failed_attempts: int

    @property
    def open(self) -> int:
        """Letters that have not come to an end."""
        return self.waiting + self.awaiting

    @property
    def under_way(self) -> int:
        """Letters that come to an end without a person."""
        return self.open - self.held


@dataclass(frozen=True, slots=True)
class _Id:
    id: int


def tally(run: int) -> Tally:
    """Count what a run's letters have come to."""
    return rows.fetch(Tally, _TALLY, {"run": run})[0]


def running(dlq: int) -> list[int]:
    """The running runs of a dlq: a letter may stand behind another run's."""
    return [row.id for row in rows.fetch(_Id, _RUNNING, {"dlq": dlq})]


def finish_runs() -> int:
    """Finish the drains that have nothing left to do; how many."""

    def finish() -> int:
        return rows.execute(_FINISH, {"runs": [row.id for row in rows.fetch(_Id, _LOCK, {})]})

    return rows.whole(finish)
