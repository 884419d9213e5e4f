"""After a restore from a backup: record messages that come back to a DLQ, and that were sent after the backup was made.

Such a message has a letter's redrive id, and the number of an attempt that is not in the restored database.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from reprocessing.store import rows
from reprocessing.store.capture.received_copies import IS_LETTER, MARKED, MarkedCopy
from reprocessing.store.replay.settlement_effects import COPY_UNTIL, RAISE_HIGHEST_SENT_NEWEST

# A copy is recognised by the rules of `received_copies.IS_LETTER`, with the letter's current target.
_FORGOTTEN = f"""
SELECT DISTINCT ON (s.message_id) s.message_id, s.no, l.id AS letter_id, l.lane_id,
       l.body_deleted_at IS NOT NULL AND l.state = 'delivered' AS lacks_body
  FROM ({MARKED}) s
  JOIN redrive_letter l ON l.public_id = s.public_id
  JOIN redrive_target t ON t.id = l.target_id
 WHERE NOT EXISTS (SELECT FROM redrive_attempt a WHERE a.letter_id = l.id AND a.no = s.no)
   AND s.no > l.earlier
   AND {IS_LETTER}
 ORDER BY s.message_id
"""  # noqa: S608  # the inserted texts are constants

# PostgreSQL has the bytes, so the copy is deleted. The attempt number in the message is counted and not used again. An
# earlier attempt that is open in the backup is closed. Decisions of people are kept. If the copy is received again, it
# may be held, so it has an `expires_at`: the letter's, because SQS keeps the copy longer than the captured message.
_RECORD = f"""
WITH back AS (
    SELECT * FROM unnest(%(message_id)b::text[], %(handles)b::text[], %(letter_id)b::bigint[], %(no)b::int[])
           AS b(message_id, handle, letter_id, no)
     WHERE redrive_now() < %(until)b::timestamptz
), kept AS (
    INSERT INTO redrive_dlq_copy (dlq_id, message_id, letter_id, state, handle, visible_until, expires_at)
    SELECT %(dlq)b, message_id, letter_id, 'delete', handle, %(until)b::timestamptz,
           (SELECT l.expires_at FROM redrive_letter l WHERE l.id = b.letter_id)
      FROM back b
    ON CONFLICT (dlq_id, message_id) DO NOTHING
    RETURNING letter_id, message_id
), newest AS (
    SELECT b.letter_id, max(b.no) AS no FROM back b JOIN kept USING (letter_id, message_id) GROUP BY b.letter_id
), closed AS (
    UPDATE redrive_attempt a
       SET outcome = 'unknown', closed_at = redrive_now(), holds_lane = false,
           detail = coalesce(a.detail, 'a later attempt returned, which was made after the restored backup')
      FROM newest n WHERE a.letter_id = n.letter_id AND a.no < n.no AND num_nonnulls(a.closed_at) = 0
), doubted AS (
    UPDATE redrive_restore_doubt x SET came_back = greatest(x.came_back, n.no)
      FROM newest n WHERE x.letter_id = n.letter_id AND x.word = ''
), moved AS (
    UPDATE redrive_letter l
       SET attempts = greatest(l.attempts, n.no - l.not_sent), epoch = l.epoch + 1, frees_lane = false,
              presumed = false,
           state = CASE WHEN l.state IN ('sending', 'awaiting', 'delivered') THEN 'waiting' ELSE l.state END,
           due_at = CASE WHEN l.state IN ('sending', 'awaiting', 'delivered') THEN redrive_now() ELSE l.due_at END,
           finished_at = CASE WHEN l.state <> 'delivered' THEN l.finished_at END,
           detail = CASE WHEN l.state = 'delivered' THEN '' ELSE l.detail END
      FROM newest n WHERE l.id = n.letter_id AND NOT (l.state = 'sending' AND EXISTS (
           SELECT FROM redrive_attempt a WHERE a.letter_id = l.id AND a.no > n.no AND num_nonnulls(a.closed_at) = 0))
    RETURNING l.id, l.dlq_id, l.target_id, l.idempotency_key, {COPY_UNTIL} AS until
), {RAISE_HIGHEST_SENT_NEWEST}
UPDATE redrive_claim c SET state = CASE WHEN m.until IS NULL THEN 'free' ELSE 'held' END, until = m.until
  FROM moved m
 WHERE m.idempotency_key IS NOT NULL AND c.target_id = m.target_id AND c.key_space = m.dlq_id::text
   AND c.key_hash = sha256(convert_to(m.idempotency_key, 'UTF8')) AND c.letter_id = m.id
"""  # noqa: S608  # the inserted text is a constant


@dataclass(frozen=True, slots=True)
class UnknownReturn:
    """A letter's message that came back to the DLQ. The attempt that sent it (number `no`) is not in the database."""

    message_id: str
    no: int
    letter_id: int
    lane_id: int | None
    lacks_body: bool = False


def find_unknown_returns(dlq: int, copies: Sequence[MarkedCopy]) -> list[UnknownReturn]:
    """Return the received messages that were sent by an attempt which is not in the database, and came back."""
    marked = [copy for copy in copies if copy.public_id is not None]
    return rows.fetch(UnknownReturn, _FORGOTTEN, {**rows.arrays(MarkedCopy, marked), "dlq": dlq}) if marked else []


def record(dlq: int, back: Sequence[UnknownReturn], handles: Sequence[str], *, until: datetime) -> None:
    """Record messages that came back. Queue their letters again if the letters are sending, awaiting or delivered.

    The caller has locked the letters' lanes. `handles`: the messages' receipt handles. `until`: when the messages
    become visible in SQS again; after this time, nothing is recorded.
    """
    rows.execute(_RECORD, {**rows.arrays(UnknownReturn, back), "dlq": dlq, "handles": list(handles), "until": until})
