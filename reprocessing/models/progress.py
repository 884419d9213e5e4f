"""How runs go: what of their letters came to what, and which of them have come to their end."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from reprocessing.domain.forecast import Forecast
from reprocessing.models import rows, waves
from reprocessing.models.aftermath import DENIED

# A drain has ended when none of its letters is under way, or still to be enlisted.
_LOCK = "SELECT id FROM redrive_run WHERE kind = 'drain' AND state = 'running' ORDER BY id FOR UPDATE SKIP LOCKED"

# Asked after the runs are locked: whoever gives one of them a letter locks it, too.
_FINISH = """
UPDATE redrive_run r SET state = 'finished', finished_at = redrive_now()
 WHERE r.id = ANY(%(runs)b::bigint[]) AND r.kind = 'drain' AND r.state = 'running'
   AND NOT EXISTS (SELECT FROM redrive_letter l WHERE l.run_id = r.id
                      AND l.state IN ('captured', 'waiting', 'sending', 'awaiting'))
RETURNING r.id
"""

_TALLY = f"""
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
         WHERE a.run_id = %(run)b
           AND (a.outcome IN ('returned', 'refused', 'unknown') OR a.returned_at IS NOT NULL OR {DENIED}))
       AS failed_attempts
  FROM redrive_letter WHERE run_id = %(run)b
"""  # noqa: S608  # the inserted text is a constant

# By target: letters still to be sent, and the longest lane, whose letters go one after another. Where an outcome is
# presumed from absence, the last letter's is known a window after it was sent.
_LEFT = """
SELECT t.arn AS name, sum(lane.unsent)::bigint AS letters, max(lane.n) AS longest, t.rate, coalesce(b.ramp, 1) AS ramp,
       coalesce(b.state, 'closed') AS breaker, wait.seconds AS tail,
       CASE WHEN t.advance = 'settled' THEN wait.seconds ELSE 0 END AS round_trip
  FROM (SELECT target_id, count(*) AS n, count(*) FILTER (WHERE state IN ('captured', 'waiting')) AS unsent
          FROM redrive_letter
         WHERE run_id = %(run)b AND state IN ('captured', 'waiting', 'sending', 'awaiting') AND objection = ''
         GROUP BY target_id, origin_id, coalesce(key_hash, int8send(id))) lane
  JOIN redrive_target t ON t.id = lane.target_id
  LEFT JOIN redrive_breaker b ON b.target_id = t.id AND b.rate_class_id IS NULL
 CROSS JOIN LATERAL (
        SELECT CASE WHEN t.proof = 'absence' THEN t.window + %(count_lag)b::float8 ELSE 0 END AS seconds) wait
 GROUP BY t.id, b.id, wait.seconds ORDER BY t.id
"""

# Since it was started; where it is not yet, since its letters were selected.
_ARRIVED = """
SELECT count(*) AS n FROM redrive_run r JOIN redrive_letter l ON l.dlq_id = r.dlq_id
 WHERE r.id = %(run)b
   AND l.captured_at > coalesce(
       r.started_at, (SELECT max(v.at) FROM redrive_review v WHERE v.run_id = r.id AND v.act = 'planned'), r.created_at)
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
class Left:
    """What of a run is left to be sent to one target, and how fast that may go now.

    Attributes:
        letters: still to be sent.
        longest: letters of the longest lane.
        rate: the target's, letters a second; None: no limit.
        ramp: the share of it that is allowed now.
        breaker: the state of the target's breaker.
        tail: seconds from a letter's sending to its outcome.
        round_trip: seconds from one letter of a lane to its next.
    """

    name: str
    letters: int
    longest: int
    rate: float | None
    ramp: float
    breaker: str
    tail: float
    round_trip: float

    @property
    def seconds(self) -> float:
        """The least time until the last of them has come to its end, if nothing fails and the ramp stays."""
        rate = None if self.rate is None else self.rate * self.ramp
        found = Forecast.of(letters=self.letters, rate=rate, longest_lane=self.longest, round_trip=self.round_trip)
        return max(found.seconds, (self.letters / rate if rate else 0.0) + self.tail)


@dataclass(frozen=True, slots=True)
class _Count:
    n: int


@dataclass(frozen=True, slots=True)
class _Id:
    id: int


@dataclass(frozen=True, slots=True)
class _State:
    state: str


def tally(run: int) -> Tally:
    """Count what a run's letters have come to."""
    return rows.fetch(Tally, _TALLY, {"run": run})[0]


def running(dlq: int) -> list[int]:
    """The running runs of a dlq: a letter may stand behind another run's."""
    return [row.id for row in rows.fetch(_Id, _RUNNING, {"dlq": dlq})]


def state(run: int) -> str:
    """Where a run stands."""
    return rows.fetch(_State, "SELECT state FROM redrive_run WHERE id = %(run)b", {"run": run})[0].state


def left(run: int, *, count_lag: float) -> list[Left]:
    """What of a run is left, by target. `count_lag`: seconds by which SQS's counts may lag behind."""
    return rows.fetch(Left, _LEFT, {"run": run, "count_lag": count_lag})


def arrived(run: int) -> int:
    """How many letters were captured in a run's dlq since it was started, or planned where it is not yet."""
    return rows.fetch(_Count, _ARRIVED, {"run": run})[0].n


def finish_runs() -> int:
    """Finish the running drains that have nothing left to do; how many. One that is paused stays so."""

    def finish() -> list[int]:
        found = [row.id for row in rows.fetch(_Id, _LOCK, {})]
        return [row.id for row in rows.fetch(_Id, _FINISH, {"runs": found})]

    done = rows.whole(finish)
    for run in done:
        rows.whole(partial(waves.close, run))
    return len(done)
