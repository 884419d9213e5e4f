"""What a planned run has before it: its letters, their lanes, and what stands in their way."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from reprocessing.models import rows


@dataclass(frozen=True, slots=True)
class Prospect:
    """The captured letters of a plan, or those of a dlq that no run has yet.

    Attributes:
        letters: those that could be replayed.
        lanes: that they would be on.
        longest: letters of the longest lane.
        objected: those that a run would park at once.
        returned: letters that came back to runs that have ended, and would go along.
        expires_at: when SQS expires the first of them; None when there are none.
        now: the database's.
    """

    letters: int
    lanes: int
    longest: int
    objected: int
    returned: int
    expires_at: datetime | None
    now: datetime


@dataclass(frozen=True, slots=True)
class Objection:
    """Why so many letters would be parked at once."""

    reason: str
    letters: int


@dataclass(frozen=True, slots=True)
class Share:
    """How many letters would go back to one target, and what it bears.

    Attributes:
        longest: letters of the longest lane.
        round_trip: seconds from one letter of a lane to its next; 0 where the next need not wait for an outcome.
        late: letters that SQS expires before the letters ahead of them can have come to their ends.
        kind: of the target.
        refires: how many others get each letter again that is published there; None: it is not published.
    """

    target_id: int
    name: str
    letters: int
    longest: int
    rate: float | None
    proof: str
    advance: str
    window: float
    round_trip: float
    late: int
    kind: str
    refires: int | None


# The letters that were selected for a plan; without one, those that nobody has asked for.
_READY = """
ready AS (
    SELECT * FROM redrive_letter
     WHERE dlq_id = %(dlq)b AND state = 'captured' AND planned AND run_id IS NOT DISTINCT FROM %(run)b::bigint
)
"""

_PROSPECT = f"""
WITH {_READY}, lanes AS (
    SELECT count(*) AS n FROM ready WHERE objection = '' GROUP BY origin_id, key_hash
)
SELECT (SELECT coalesce(sum(n), 0)::bigint FROM lanes) AS letters, (SELECT count(*) FROM lanes) AS lanes,
       (SELECT coalesce(max(n), 0) FROM lanes) AS longest,
       (SELECT count(*) FROM ready WHERE objection <> '') AS objected,
       (SELECT count(*) FROM redrive_letter l JOIN redrive_run r ON r.id = l.run_id
         WHERE r.dlq_id = %(dlq)b AND r.state IN ('finished', 'aborted')
           AND l.state IN ('waiting', 'sending', 'awaiting'))
       AS returned,
       (SELECT min(expires_at) FROM ready) AS expires_at, redrive_now() AS now
"""  # noqa: S608  # the inserted text is the constant above

_OBJECTIONS = f"""
WITH {_READY}
SELECT objection AS reason, count(*) AS letters FROM ready WHERE objection <> ''
 GROUP BY objection ORDER BY letters DESC, reason
"""  # noqa: S608  # the inserted text is the constant above

# What is presumed from absence is known when the window is over and SQS's counts have caught up, at the earliest.
_SHARES = f"""
WITH {_READY}, placed AS (
    SELECT target_id, expires_at,
           row_number() OVER (PARTITION BY origin_id, key_hash ORDER BY sequence, message_id) AS place
      FROM ready WHERE objection = ''
)
SELECT t.id AS target_id, t.arn AS name, count(*) AS letters, max(place) AS longest, t.rate, t.proof, t.advance,
       t.window, trip.seconds AS round_trip,
       count(*) FILTER (WHERE place > 1 AND expires_at > redrive_now()
                          AND place * trip.seconds > extract(epoch FROM expires_at - redrive_now())) AS late,
       t.kind, t.refires
  FROM placed JOIN redrive_target t ON t.id = placed.target_id
 CROSS JOIN LATERAL (SELECT CASE WHEN t.proof = 'absence' AND t.advance = 'settled'
                                 THEN t.window + %(count_lag)b::float8 ELSE 0 END AS seconds) trip
 GROUP BY t.id, trip.seconds ORDER BY t.id
"""  # noqa: S608  # the inserted text is the constant above


def prospect(dlq: int, *, run: int | None = None) -> Prospect:
    """What this plan has before it; without one, a run of all that nobody has asked for."""
    return rows.fetch(Prospect, _PROSPECT, {"dlq": dlq, "run": run})[0]


def objections(dlq: int, *, run: int | None = None) -> list[Objection]:
    """Why letters of such a run would be parked at once, the most frequent first."""
    return rows.fetch(Objection, _OBJECTIONS, {"dlq": dlq, "run": run})


def shares(dlq: int, *, run: int | None = None, count_lag: float = 0.0) -> list[Share]:
    """What each target would get. `count_lag`: seconds by which SQS's counts may lag behind."""
    return rows.fetch(Share, _SHARES, {"dlq": dlq, "run": run, "count_lag": count_lag})
