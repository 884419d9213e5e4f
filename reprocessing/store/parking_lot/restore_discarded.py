"""Restore discarded letters to the parking lot."""

from __future__ import annotations

from collections.abc import Sequence

from reprocessing.store import rows
from reprocessing.store.replay.settlement_effects import COPY_UNTIL

# The letter gets the parking reason that it had before it was discarded. If its idempotency key was marked as
# discarded, the key becomes free when no copy of the letter can still be delivered. Duplicates that were parked stay
# parked.
_RESTORE = f"""
WITH moved AS (
    UPDATE redrive_letter l
       SET state = 'parked', finished_at = redrive_now(),
           reason = coalesce((SELECT nullif(r.before ->> 'reason', '') FROM redrive_audit_entry r
                               WHERE r.letter_id = l.id AND r.act = 'discarded' ORDER BY r.at DESC, r.id DESC LIMIT 1),
                             'quarantined')
     WHERE l.id = ANY(%(letters)b::bigint[]) AND l.state = 'discarded'
    RETURNING l.id, l.lane_id, l.dlq_id, l.target_id, l.idempotency_key, greatest({COPY_UNTIL}, (
              SELECT max(a.deadline) FROM redrive_attempt a
               WHERE a.letter_id = l.id AND a.target_id = l.target_id AND num_nonnulls(a.closed_at) = 0)) AS until
), claims AS (
    UPDATE redrive_claim c SET state = CASE WHEN m.until IS NULL THEN 'free' ELSE 'held' END, until = m.until
      FROM moved m
     WHERE m.idempotency_key IS NOT NULL AND c.target_id = m.target_id AND c.key_space = m.dlq_id::text
       AND c.key_hash = sha256(convert_to(m.idempotency_key, 'UTF8')) AND c.letter_id = m.id
       AND c.state = 'discarded'
)
SELECT DISTINCT lane_id FROM moved WHERE lane_id IS NOT NULL
"""  # noqa: S608  # the inserted text is a constant


def restore_letters(letters: Sequence[int]) -> set[int]:
    """Park discarded letters again, each for the reason that it had before; return the ids of their lanes.

    The letters' idempotency keys can be used again, once no sent copy of the letter can still be delivered.
    """
    return set(rows.column(int, _RESTORE, {"letters": list(letters)}))
