"""Record that a message which this service sent came back to a DLQ (a return), so its letter has failed again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, LiteralString

from reprocessing.store import rows
from reprocessing.store.replay.settlement import Deletable
from reprocessing.store.replay.settlement_effects import (
    CLAIMS_AND_COPIES,
    DECIDE_IF_FINISHED,
    FREE_FORMER_CLAIMS,
    PERSON_DECIDES,
    RAISE_HIGHEST_SENT,
    REPORTED_FAILED,
)

_SPENT: Final[LiteralString] = """
(SELECT l.attempts - l.attempts_before_release - l.spared >= d.max_attempts AND NOT EXISTS (
           SELECT FROM redrive_run r WHERE r.id = l.run_id AND r.kind = 'automatic')
   FROM redrive_letter l JOIN redrive_dlq d ON d.id = l.dlq_id WHERE l.id = b.letter_id)
"""

# Each copy is recorded once. The letter's state changes only if its newest sent attempt came back. If the consumer has
# already reported the failure, the state has changed before.
_RETURN = f"""
WITH back AS (
    SELECT * FROM unnest(%(message_id)b::text[], %(handle)b::text[], %(attempt_id)b::bigint[], %(letter_id)b::bigint[],
                         %(due)b::float8[]) AS b(message_id, handle, attempt_id, letter_id, due)
     WHERE redrive_now() < %(until)b::timestamptz
), kept AS (
    INSERT INTO redrive_dlq_copy (dlq_id, message_id, letter_id, attempt_id, state, handle, visible_until)
    SELECT %(dlq)b, message_id, letter_id, attempt_id, 'delete', handle, %(until)b::timestamptz FROM back
    ON CONFLICT (dlq_id, message_id) DO NOTHING
), closed AS (
    UPDATE redrive_attempt a
       SET returned_at = redrive_now(), outcome = coalesce(a.outcome, 'returned'),
           closed_at = coalesce(a.closed_at, redrive_now()), holds_lane = false,
           sent_message_id = coalesce(a.sent_message_id, b.message_id)
      FROM (SELECT DISTINCT ON (attempt_id) * FROM back) b
     WHERE a.id = b.attempt_id AND a.returned_at IS NULL
    RETURNING a.id, a.letter_id, a.no, b.due, a.outcome = 'returned' AS was_open, {REPORTED_FAILED} AS denied,
           {_SPENT} AS spent
), {DECIDE_IF_FINISHED}, moved AS (
    UPDATE redrive_letter l
       SET epoch = l.epoch + 1, frees_lane = false, presumed = false,
           blocked_reason = CASE WHEN c.ends THEN '' ELSE l.blocked_reason END,
           state = CASE WHEN {PERSON_DECIDES} THEN l.state WHEN c.ends THEN 'parked' ELSE 'waiting' END,
           due_at = CASE WHEN NOT ({PERSON_DECIDES} OR c.ends) THEN redrive_now() + make_interval(secs => c.due) END,
           reason = CASE WHEN {PERSON_DECIDES} THEN l.reason WHEN c.ends THEN 'attempts_spent' ELSE '' END,
           detail = CASE WHEN {PERSON_DECIDES} THEN l.detail WHEN c.ends
                         THEN 'it returned to the DLQ after its last attempt' ELSE '' END,
           finished_at = CASE WHEN {PERSON_DECIDES} THEN l.finished_at WHEN c.ends THEN redrive_now() END
      FROM judged c
     WHERE l.id = c.letter_id AND NOT c.denied
       AND NOT EXISTS (SELECT FROM redrive_attempt later WHERE later.letter_id = l.id AND later.no > c.no
                          AND later.outcome IS DISTINCT FROM 'not_sent')
       AND l.state IN ('waiting', 'sending', 'awaiting', 'delivered', 'parked', 'discarded')
    RETURNING l.id, l.dlq_id, l.message_id, l.target_id, l.idempotency_key, l.state,
              CASE WHEN l.state = 'discarded' THEN 'discarded' ELSE 'free' END AS claim, c.until
), {FREE_FORMER_CLAIMS}, {RAISE_HIGHEST_SENT}, {CLAIMS_AND_COPIES}
SELECT * FROM copies
"""  # noqa: S608  # the inserted text is a constant


@dataclass(frozen=True, slots=True)
class ReturnedMessage:
    """A message that came back to the DLQ. `due`: seconds until its letter may be sent again."""

    message_id: str
    handle: str
    attempt_id: int
    letter_id: int
    lane_id: int
    due: float


def record(dlq: int, returns: Sequence[ReturnedMessage], *, until: datetime) -> list[Deletable]:
    """Record messages that came back, and queue or park their letters; return the messages that may be deleted.

    The caller must have locked the letters' lanes, so that no person releases a letter meanwhile: a release allows more
    attempts. If a later attempt of a letter was sent, the letter is not changed. `until`: when the messages become
    visible in SQS again; after this time, nothing is recorded.
    """
    return rows.fetch(Deletable, _RETURN, {**rows.arrays(ReturnedMessage, returns), "dlq": dlq, "until": until})
