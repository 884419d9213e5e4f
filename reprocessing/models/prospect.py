"""What a run of a dlq would have before it: the captured letters, their lanes, and what stands in their way."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from reprocessing.models import rows


@dataclass(frozen=True, slots=True)
class Prospect:
    """The captured letters of a dlq that no run has yet.

    Attributes:
        letters: those that could be replayed.
        lanes: that they would be on.
        longest: letters of the longest lane.
        objected: those that a run would park at once.
        expires_at: when SQS expires the first of them; None when there are none.
    """

    letters: int
    lanes: int
    longest: int
    objected: int
    expires_at: datetime | None


@dataclass(frozen=True, slots=True)
class Objection:
    """Why so many letters would be parked at once."""

    reason: str
    letters: int


@dataclass(frozen=True, slots=True)
class Share:
    """How many letters would go back to one target, and what it bears."""

    target_id: int
    name: str
    letters: int
    longest: int
    rate: float | None
    proof: str
    advance: str
    window: float


_PROSPECT = """
WITH ready AS (
    SELECT id, origin_id, key_hash, objection, expires_at FROM redrive_letter
     WHERE dlq_id = %(dlq)b AND state = 'captured' AND planned AND run_id IS NULL
), lanes AS (
    SELECT count(*) AS n FROM ready WHERE objection = '' GROUP BY origin_id, key_hash
)
SELECT (SELECT coalesce(sum(n), 0)::bigint FROM lanes) AS letters, (SELECT count(*) FROM lanes) AS lanes,
       (SELECT coalesce(max(n), 0) FROM lanes) AS longest,
       (SELECT count(*) FROM ready WHERE objection <> '') AS objected,
       (SELECT min(expires_at) FROM ready) AS expires_at
"""

_OBJECTIONS = """
SELECT objection AS reason, count(*) AS letters FROM redrive_letter
 WHERE dlq_id = %(dlq)b AND state = 'captured' AND planned AND run_id IS NULL AND objection <> ''
 GROUP BY objection ORDER BY letters DESC, reason
"""

_SHARES = """
WITH lanes AS (
    SELECT target_id, count(*) AS n FROM redrive_letter
     WHERE dlq_id = %(dlq)b AND state = 'captured' AND planned AND run_id IS NULL AND objection = ''
     GROUP BY target_id, origin_id, key_hash
)
SELECT t.id AS target_id, t.arn AS name, sum(n)::bigint AS letters, max(n) AS longest, t.rate, t.proof, t.advance,
       t.window
  FROM lanes JOIN redrive_target t ON t.id = lanes.target_id GROUP BY t.id ORDER BY t.id
"""


def prospect(dlq: int) -> Prospect:
    """What a run of this dlq would have before it."""
    return rows.fetch(Prospect, _PROSPECT, {"dlq": dlq})[0]


def objections(dlq: int) -> list[Objection]:
    """Why letters of this dlq would be parked at once, the most frequent first."""
    return rows.fetch(Objection, _OBJECTIONS, {"dlq": dlq})


def shares(dlq: int) -> list[Share]:
    """What each target would get."""
    return rows.fetch(Share, _SHARES, {"dlq": dlq})
