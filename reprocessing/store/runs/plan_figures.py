"""Count the letters, lanes and targets of a planned run, and the letters that it could not send, by reason."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final, LiteralString

from reprocessing.domain.safety.rate_ramp import IDLE_SECONDS
from reprocessing.models.target import SYNCHRONOUS, Advance, Proof
from reprocessing.store import rows
from reprocessing.store.outcomes.evidence import LEAST_WAIT


@dataclass(frozen=True, slots=True)
class PlanFigures:
    """Figures about the letters that a planned run would send; without a plan, about all captured letters of the DLQ.

    Attributes:
        letters: letters that can be sent, on `lanes` lanes; `longest`: number of letters on the longest lane.
        objected: letters that cannot be sent, which the run would park.
        returned: unfinished letters of ended runs, which the run would take over (adopt).
        expires_at: when SQS deletes the first message of all these letters.
        now: the database's clock.
    """

    letters: int
    lanes: int
    longest: int
    objected: int
    returned: int
    expires_at: datetime | None
    now: datetime


@dataclass(frozen=True, slots=True)
class BlockedCount:
    """How many letters a run would park for one reason, without sending them."""

    reason: str
    letters: int


@dataclass(frozen=True, slots=True)
class TargetFigures:
    """The letters for one target, and its limits. Times are seconds.

    Attributes:
        longest: letters of the longest lane.
        ramp: initial share of the rate; `ramp_every`: time between steps.
        tail: shortest time from sending to outcome; `tail_of_busy`: the same if the target is never empty.
        round_trip: time between two letters of a lane, until the first has its outcome; 0: the second does not wait.
        watched_by: DLQ whose captures show that no message came back; None: outcomes do not depend on captures.
        every: time between two captures of `watched_by`; 0: a capture is always running.
        late: letters whose messages would expire before earlier letters of their lanes have an outcome.
        size: bytes of the letters.
        confirmed_fanout: subscribers that get each published letter again; None: not published.
    """

    target_id: int
    name: str
    letters: int
    longest: int
    rate: float | None
    proof: str
    advance: str
    window: float
    ramp: float
    ramp_every: float
    tail: float
    tail_of_busy: float
    round_trip: float
    watched_by_id: int | None
    watched_by: str | None
    every: float
    late: int
    kind: str
    size: int
    confirmed_fanout: int | None

    @property
    def overtakes(self) -> int:
        """How many later letters of a lane may be sent before a failed letter of the lane is sent again."""
        waits = self.advance == Advance.SETTLED and self.proof != Proof.ACCEPTED
        answered = self.proof == Proof.ACCEPTED and self.kind in SYNCHRONOUS
        return 0 if waits or answered else self.longest - 1


# Letters selected for a plan; without a plan, captured letters in no run.
_READY: Final[LiteralString] = """
ready AS (
    SELECT * FROM redrive_letter WHERE dlq_id = %(dlq)b AND state = 'captured' AND planned AND {whose}
)
"""

_PROSPECT: Final[LiteralString] = f"""
WITH {_READY}, lanes AS (
    SELECT count(*) AS n FROM ready WHERE blocked_reason = '' GROUP BY source_id, key_hash
)
SELECT (SELECT coalesce(sum(n), 0)::bigint FROM lanes) AS letters, (SELECT count(*) FROM lanes) AS lanes,
       (SELECT coalesce(max(n), 0) FROM lanes) AS longest,
       (SELECT count(*) FROM ready WHERE blocked_reason <> '') AS objected,
       (SELECT count(*) FROM redrive_letter l JOIN redrive_run r ON r.id = l.run_id
         WHERE r.dlq_id = %(dlq)b AND r.state IN ('finished', 'aborted', 'planned')
           AND l.state IN ('waiting', 'sending', 'awaiting'))
       AS returned,
       (SELECT min(expires_at) FROM ready) AS expires_at, redrive_now() AS now
"""  # noqa: S608  # the inserted text is the constant above

_OBJECTIONS: Final[LiteralString] = f"""
WITH {_READY}
SELECT blocked_reason AS reason, count(*) AS letters FROM ready WHERE blocked_reason <> ''
 GROUP BY blocked_reason ORDER BY letters DESC, reason
"""  # noqa: S608  # the inserted text is the constant above

# After idle time the ramp restarts (see `rate_ramps.reset_idle_ramps`). An outcome by absence is known at the earliest
# when the target can have been seen empty twice; if it is never empty, after the window and the delay of SQS's counts.
_SHARES: Final[LiteralString] = f"""
WITH {_READY}, placed AS (
    SELECT target_id, expires_at, size,
           row_number() OVER (PARTITION BY source_id, key_hash ORDER BY sequence, message_id) AS place
      FROM ready WHERE blocked_reason = ''
)
SELECT t.id AS target_id, t.arn AS name, count(*) AS letters, max(place) AS longest, t.rate, t.proof, t.advance,
       t.window, b.ramp_every, tail.seconds AS tail,
       CASE WHEN t.proof = 'absence' THEN t.window + %(count_lag)b::float8 ELSE 0 END AS tail_of_busy,
       trip.seconds AS round_trip,
       w.id AS watched_by_id, w.name AS watched_by, 0::float8 AS every,
       CASE WHEN b.ramp_at + make_interval(secs => greatest(%(idle)b::float8, 2 * b.ramp_every)) > redrive_now()
            THEN b.ramp ELSE b.ramp_from END AS ramp,
       count(*) FILTER (WHERE place > 1 AND expires_at > redrive_now()
                          AND place * trip.seconds > extract(epoch FROM expires_at - redrive_now())) AS late,
       t.kind, sum(size)::bigint AS size, t.confirmed_fanout
  FROM placed JOIN redrive_target t ON t.id = placed.target_id
  JOIN redrive_breaker b ON b.target_id = t.id AND b.rate_class_id IS NULL
  LEFT JOIN redrive_dlq w ON w.id = t.watched_by_id AND t.proof = 'absence'
 CROSS JOIN LATERAL (
       SELECT CASE WHEN t.proof = 'absence' THEN {LEAST_WAIT} ELSE 0 END AS seconds) tail
 CROSS JOIN LATERAL (SELECT CASE WHEN t.advance = 'settled' THEN tail.seconds ELSE 0 END AS seconds) trip
 GROUP BY t.id, b.id, w.id, tail.seconds, trip.seconds ORDER BY t.id
"""  # noqa: S608  # the inserted text is the constant above


def plan_figures_of(dlq: int, *, run: int | None = None) -> PlanFigures:
    """Return the figures of a planned run; without a run, of all captured letters of the DLQ that are in no run."""
    return rows.fetch(PlanFigures, _of(run, _PROSPECT), {"dlq": dlq, "run": run})[0]


def blocked_counts(dlq: int, *, run: int | None = None) -> list[BlockedCount]:
    """Return how many letters the run would park without sending them, by reason, the most frequent reason first."""
    return rows.fetch(BlockedCount, _of(run, _OBJECTIONS), {"dlq": dlq, "run": run})


def target_figures(dlq: int, *, run: int | None = None, count_lag: float = 0.0) -> list[TargetFigures]:
    """Return the figures of each target of a planned run (without a run: of captured letters that are in no run).

    `count_lag`: delay of SQS's counts in seconds.
    """
    asked = {"dlq": dlq, "run": run, "count_lag": count_lag, "idle": IDLE_SECONDS}
    return rows.fetch(TargetFigures, _of(run, _SHARES), asked)


def _of(run: int | None, statement: LiteralString) -> LiteralString:
    return statement.format(whose="run_id IS NULL" if run is None else "run_id = %(run)b::bigint")
