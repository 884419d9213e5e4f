"""The statements of returns whose attempt nobody remembers: sent after the backup that PostgreSQL was restored from.

The letter is known by its mark, and no attempt has the number. So it was sent, and failed, and is no new letter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from reprocessing.store import rows
from reprocessing.store.capture.received_copies import Marked
from reprocessing.store.replay.settlement_effects import COPY_UNTIL, PASSED_ONCE

# As of what is remembered: the marks, the same bytes, and it died where the letter goes.
_FORGOTTEN = """
SELECT DISTINCT ON (s.message_id) s.message_id, s.no, l.id AS letter_id, l.lane_id
  FROM unnest(%(ids)b::text[], %(hashes)b::bytea[], %(publics)b::uuid[], %(nos)b::int[], %(sources)b::text[])
       AS s(message_id, body_hash, public_id, no, source)
  JOIN redrive_letter l ON l.public_id = s.public_id
  JOIN redrive_target t ON t.id = l.target_id
 WHERE NOT EXISTS (SELECT FROM redrive_attempt a WHERE a.letter_id = l.id AND a.no = s.no)
   AND s.no > l.earlier
   AND (l.body_hash = s.body_hash OR t.kind = 'celery' OR EXISTS (
            SELECT FROM redrive_revision v
             WHERE v.letter_id = l.id AND s.body_hash IN (v.body_hash, v.former_hash)))
   AND CASE WHEN s.source IS NOT NULL THEN t.arn = s.source
            ELSE %(dlq)b IN (l.dlq_id, t.watched_by_id)
              OR EXISTS (SELECT FROM redrive_origin o WHERE o.dlq_id = %(dlq)b AND o.target_id = t.id) END
 ORDER BY s.message_id
"""

# Its bytes are in Postgres, so the copy is to be deleted. A number that came back is never given again, and counts.
# What it overtook, an attempt that is remembered as open, has ended long ago. What people decided stays.
_RECORD = f"""
WITH back AS (
    SELECT * FROM unnest(%(ids)b::text[], %(handles)b::text[], %(letters)b::bigint[], %(nos)b::int[])
           AS b(message_id, handle, letter_id, no)
     WHERE redrive_now() < %(until)b::timestamptz
), kept AS (
    INSERT INTO redrive_custody (dlq_id, message_id, letter_id, state, handle, visible_until)
    SELECT %(dlq)b, message_id, letter_id, 'delete', handle, %(until)b::timestamptz
      FROM back
    ON CONFLICT (dlq_id, message_id) DO NOTHING
    RETURNING letter_id, message_id
), newest AS (
    SELECT b.letter_id, max(b.no) AS no FROM back b JOIN kept USING (letter_id, message_id) GROUP BY b.letter_id
), closed AS (
    UPDATE redrive_attempt a
       SET outcome = 'unknown', closed_at = redrive_now(), holds_lane = false,
           detail = coalesce(a.detail, 'A later attempt came back, which is forgotten')
      FROM newest n WHERE a.letter_id = n.letter_id AND a.no < n.no AND num_nonnulls(a.closed_at) = 0
), doubted AS (
    UPDATE redrive_doubt x SET came_back = greatest(x.came_back, n.no)
      FROM newest n WHERE x.letter_id = n.letter_id AND x.word = ''
), moved AS (
    UPDATE redrive_letter l
       SET attempts = greatest(l.attempts, n.no - l.not_sent), epoch = l.epoch + 1, lets_pass = false, presumed = false,
           state = CASE WHEN l.state IN ('sending', 'awaiting', 'delivered') THEN 'waiting' ELSE l.state END,
           due_at = CASE WHEN l.state IN ('sending', 'awaiting', 'delivered') THEN redrive_now() ELSE l.due_at END,
           finished_at = CASE WHEN l.state <> 'delivered' THEN l.finished_at END,
           detail = CASE WHEN l.state = 'delivered' THEN '' ELSE l.detail END
      FROM newest n WHERE l.id = n.letter_id AND NOT (l.state = 'sending' AND EXISTS (
           SELECT FROM redrive_attempt a WHERE a.letter_id = l.id AND a.no > n.no AND num_nonnulls(a.closed_at) = 0))
    RETURNING l.id, l.dlq_id, l.target_id, l.idempotency_key, {COPY_UNTIL} AS until
), {PASSED_ONCE}
UPDATE redrive_claim c SET state = CASE WHEN m.until IS NULL THEN 'free' ELSE 'held' END, until = m.until
  FROM moved m
 WHERE m.idempotency_key IS NOT NULL AND c.target_id = m.target_id AND c.key_space = m.dlq_id::text
   AND c.key_hash = sha256(convert_to(m.idempotency_key, 'UTF8')) AND c.letter_id = m.id
"""  # noqa: S608  # the inserted text is a constant


@dataclass(frozen=True, slots=True)
class Forgotten:
    """A copy that is a letter of ours, come back from an attempt that is not remembered."""

    message_id: str
    no: int
    letter_id: int
    lane_id: int | None


def returns(dlq: int, copies: Sequence[Marked]) -> list[Forgotten]:
    """Those of the copies received from this dlq whose mark names a letter of ours and a forgotten attempt."""
    marked = [one for one in copies if one.public_id is not None]
    if not marked:
        return []
    values = {
        "dlq": dlq,
        "ids": [copy.message_id for copy in marked],
        "hashes": [copy.body_hash for copy in marked],
        "publics": [copy.public_id for copy in marked],
        "nos": [copy.no for copy in marked],
        "sources": [copy.source for copy in marked],
    }
    return rows.fetch(Forgotten, _FORGOTTEN, values)


def record(dlq: int, back: Sequence[Forgotten], handles: Sequence[str], *, until: datetime) -> None:
    """Record that they came back: each letter waits for its next attempt, or its person. The lanes are locked.

    `until`: when the copies come to sight. By then another capture may have received them: nothing is recorded.
    """
    values = {
        "dlq": dlq,
        "ids": [one.message_id for one in back],
        "handles": list(handles),
        "letters": [one.letter_id for one in back],
        "nos": [one.no for one in back],
        "until": until,
    }
    rows.execute(_RECORD, values)
