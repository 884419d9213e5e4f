"""The one statement that is committed before a trip to the wire: what it does not return is not sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from reprocessing.models import rows
from reprocessing.models.lanes import ACTIVE_RUNS

# Lanes still mine with enough lease left; claims won (from the past by a person's word alone); letters to sending,
# counted; attempts opened. Whether the run is active is asked after the lanes were found: asked with them, the planner
# would read every due lane of the run.
_INTENT = f"""
WITH mine AS (
    SELECT a.lane_id, a.letter_id, n.fence, n.run_id
      FROM unnest(%(lanes)b::bigint[], %(fences)b::bigint[], %(letters)b::bigint[]) AS a(lane_id, fence, letter_id)
      JOIN redrive_lane n ON n.id = a.lane_id
     WHERE n.fence = a.fence AND n.phase = 'leased'
       AND n.due_at > redrive_now() + make_interval(secs => %(margin)b::float8)
     ORDER BY n.id FOR UPDATE OF n
), wanted AS (
    SELECT m.fence, l.* FROM mine m JOIN redrive_letter l ON l.id = m.letter_id
     WHERE l.state = 'waiting' AND l.lane_id = m.lane_id
       AND NOT EXISTS (SELECT FROM redrive_attempt a WHERE a.lane_id = m.lane_id AND a.holds_lane)
       AND m.run_id IN ({ACTIVE_RUNS})
     ORDER BY l.id FOR UPDATE OF l
), claimed AS (
    INSERT INTO redrive_claim AS c (target_id, key_space, key_hash, letter_id, state, body_hash, until)
    SELECT DISTINCT ON (target_id, dlq_id, idempotency_key) target_id, dlq_id::text,
           sha256(convert_to(idempotency_key, 'UTF8')), id, 'held', body_hash,
           redrive_now() + make_interval(secs => %(hold)b::float8)
      FROM wanted WHERE idempotency_key IS NOT NULL
     ORDER BY target_id, dlq_id, idempotency_key, died_at, id
    ON CONFLICT (target_id, key_space, key_hash) DO UPDATE
       SET letter_id = excluded.letter_id, state = 'held', body_hash = excluded.body_hash, until = excluded.until
     WHERE c.state = 'free' OR c.letter_id = excluded.letter_id
        OR (c.state <> 'held' AND EXISTS (SELECT FROM wanted w
                                           WHERE w.id = excluded.letter_id AND w.released_by IS NOT NULL))
    RETURNING c.letter_id
), moved AS (
    UPDATE redrive_letter l SET state = 'sending', attempts = l.attempts + 1, due_at = NULL
      FROM wanted w
     WHERE l.id = w.id AND l.state = 'waiting'
       AND (l.idempotency_key IS NULL OR EXISTS (SELECT FROM claimed WHERE claimed.letter_id = l.id))
    RETURNING l.id, l.lane_id, l.target_id, l.run_id, l.attempts, l.forgiven, l.not_sent, l.epoch, l.sequence,
              l.public_id, l.message_id, l.idempotency_key, l.dlq_id, l.origin_id, w.fence
), opened AS (
    INSERT INTO redrive_attempt (letter_id, lane_id, target_id, run_id, no, epoch, fence, opened_at, holds_lane)
    SELECT id, lane_id, target_id, run_id, attempts + not_sent, epoch, fence, redrive_now(), true FROM moved
    RETURNING id, letter_id, no
)
SELECT o.id AS attempt_id, o.no, m.id AS letter_id, m.lane_id, m.fence, m.target_id, m.dlq_id,
       m.attempts - m.forgiven AS attempts, m.not_sent, m.epoch, m.sequence, m.public_id, m.message_id,
       m.idempotency_key, p.body, p.attributes, p.system, g.arn AS origin_arn
  FROM opened o JOIN moved m ON m.id = o.letter_id JOIN redrive_payload p ON p.letter_id = m.id
  LEFT JOIN redrive_origin g ON g.id = m.origin_id
 ORDER BY o.id
"""  # noqa: S608  # the inserted text is a constant


@dataclass(frozen=True, slots=True)
class Intended:
    """One letter that may now be sent: the attempt is committed, and `attempts` counts it against the limit."""

    attempt_id: int
    no: int
    letter_id: int
    lane_id: int
    fence: int
    target_id: int
    dlq_id: int
    attempts: int
    not_sent: int
    epoch: int
    sequence: str
    public_id: UUID
    message_id: str
    idempotency_key: str | None
    body: bytes
    attributes: bytes
    system: dict[str, Any]
    origin_arn: str | None


def intend(
    lanes: Sequence[int], fences: Sequence[int], letters: Sequence[int], *, margin: float, hold: float
) -> list[Intended]:
    """Commit the intent to send these heads of these lanes.

    Args:
        lanes: each with
        fences: the fence it was leased under, and
        letters: its head.
        margin: seconds of lease that must be left.
        hold: seconds after which others may ask again about a claimed key.

    Returns:
        Those that may be sent. The others lost their lane, their claim, their run or their standing in between.
    """
    values = {
        "lanes": list(lanes),
        "fences": list(fences),
        "letters": list(letters),
        "margin": margin,
        "hold": hold,
    }
    return rows.fetch(Intended, _INTENT, values)
