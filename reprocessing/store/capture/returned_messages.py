"""The statements of a return: a message of ours came back to a dlq. The same letter, failed again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, LiteralString

from reprocessing.store import rows
from reprocessing.store.replay.settlement import Deletable
from reprocessing.store.replay.settlement_effects import AFTERMATH, DENIED, JUDGED, LEFT_BEHIND, PASSED, STAYS

_SPENT: Final[LiteralString] = """
(SELECT l.attempts - l.forgiven - l.spared >= d.max_attempts AND NOT EXISTS (
           SELECT FROM redrive_run r WHERE r.id = l.run_id AND r.kind = 'standing')
   FROM redrive_letter l JOIN redrive_dlq d ON d.id = l.dlq_id WHERE l.id = b.letter_id)
"""

# Recorded with its copy, once; and only the newest attempt's return moves the letter (of those that went out), unless
# its consumer has said before that it failed.
_RETURN = f"""
WITH back AS (
    SELECT * FROM unnest(%(ids)b::text[], %(handles)b::text[], %(attempts)b::bigint[], %(letters)b::bigint[],
                         %(dues)b::float8[])
    AS b(message_id, handle, attempt_id, letter_id, due)
     WHERE redrive_now() < %(until)b::timestamptz
), kept AS (
    INSERT INTO redrive_custody (dlq_id, message_id, letter_id, attempt_id, state, handle, visible_until)
    SELECT %(dlq)b, message_id, letter_id, attempt_id, 'delete', handle, %(until)b::timestamptz
      FROM back
    ON CONFLICT (dlq_id, message_id) DO NOTHING
), closed AS (
    UPDATE redrive_attempt a
       SET returned_at = redrive_now(), outcome = coalesce(a.outcome, 'returned'),
           closed_at = coalesce(a.closed_at, redrive_now()), holds_lane = false,
           sent_message_id = coalesce(a.sent_message_id, b.message_id)
      FROM (SELECT DISTINCT ON (attempt_id) * FROM back) b
     WHERE a.id = b.attempt_id AND a.returned_at IS NULL
    RETURNING a.id, a.letter_id, a.no, b.due, a.outcome = 'returned' AS was_open, {DENIED} AS denied, {_SPENT} AS spent
), {JUDGED}, moved AS (
    UPDATE redrive_letter l
       SET epoch = l.epoch + 1, lets_pass = false, presumed = false,
           objection = CASE WHEN c.ends THEN '' ELSE l.objection END,
           state = CASE WHEN {STAYS} THEN l.state
                        WHEN c.ends THEN 'parked' ELSE 'waiting' END,
           due_at = CASE WHEN {STAYS} OR c.ends THEN NULL
                         ELSE redrive_now() + make_interval(secs => c.due) END,
           reason = CASE WHEN {STAYS} THEN l.reason WHEN NOT c.ends THEN ''
                         ELSE 'attempts_spent' END,
           detail = CASE WHEN {STAYS} THEN l.detail WHEN c.ends
                         THEN 'it came back to the dlq after its last attempt' ELSE '' END,
           finished_at = CASE WHEN {STAYS} THEN l.finished_at
                              WHEN c.ends THEN redrive_now() END
      FROM judged c
     WHERE l.id = c.letter_id AND NOT c.denied
       AND NOT EXISTS (SELECT FROM redrive_attempt later WHERE later.letter_id = l.id AND later.no > c.no
                          AND later.outcome IS DISTINCT FROM 'not_sent')
       AND l.state IN ('waiting', 'sending', 'awaiting', 'delivered', 'parked', 'discarded')
    RETURNING l.id, l.dlq_id, l.message_id, l.target_id, l.idempotency_key, l.state,
              CASE WHEN l.state = 'discarded' THEN 'discarded' ELSE 'free' END AS claim, c.until
), {LEFT_BEHIND}, {PASSED}, {AFTERMATH}
SELECT * FROM copies
"""  # noqa: S608  # the inserted text is a constant


@dataclass(frozen=True, slots=True)
class Return:
    """One copy that came back, and what it does to its letter.

    Attributes:
        due: seconds from now until the letter may be tried again.
    """

    message_id: str
    handle: str
    attempt_id: int
    letter_id: int
    lane_id: int
    due: float


def record(dlq: int, returns: Sequence[Return], *, until: datetime) -> list[Deletable]:
    """Record returns, and reopen or park their letters; the held copies of those parked. The lanes are locked.

    `until`: when the copies come to sight. By then another capture may have received them: nothing is recorded.
    Whether the dlq allows another attempt is asked here, under the lock: a person may have released the letter.
    A repeat changes nothing. A return of an attempt that another has followed on the wire is recorded, and that is all.
    """
    values = {
        "dlq": dlq,
        "ids": [one.message_id for one in returns],
        "handles": [one.handle for one in returns],
        "attempts": [one.attempt_id for one in returns],
        "letters": [one.letter_id for one in returns],
        "dues": [one.due for one in returns],
        "until": until,
    }
    return rows.fetch(Deletable, _RETURN, values)
