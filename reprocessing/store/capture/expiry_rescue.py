"""Mark the messages of unfinished letters for deletion shortly before SQS drops them at the end of the retention.

PostgreSQL still has the letters, so nothing is lost. The service deletes the messages because SQS does not report which
messages expired: an expired message would look like a message that another reader took from the DLQ.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from reprocessing.models.dlq import DeadLetterQueue
from reprocessing.store import rows
from reprocessing.store.dlqs import dlq_status

#: Copies are marked this many seconds before SQS drops them. In a standard DLQ, retention counts from the message's
#: first SentTimestamp. FIFO DLQs do not matter here: no copies are held in them.
RESCUE_SECONDS: Final = 3_600.0

# Letters are read in the order of `expires_at`, up to `margin` seconds from now: only the start of the index
# `open_letters_by_expiry`. With the lower bound '-infinity' PostgreSQL expects few letters, and chooses this index. A
# letter's copies are found by the letter's id, and the copies to change by their message ids: `state || ''` keeps
# PostgreSQL from the index of all held copies. Locked copies are left to the next call.
_RESCUE = """
WITH due AS (
    SELECT c.message_id FROM redrive_letter l CROSS JOIN LATERAL (
            SELECT k.message_id FROM redrive_dlq_copy k
             WHERE k.letter_id = l.id AND k.dlq_id = %(dlq)b AND k.state || '' = 'held' OFFSET 0) c
     WHERE l.dlq_id = %(dlq)b AND l.finished_at IS NULL
       AND l.expires_at BETWEEN '-infinity' AND (SELECT redrive_now() + make_interval(secs => %(margin)b::float8))
     ORDER BY l.expires_at, l.id LIMIT %(limit)b FOR UPDATE OF c SKIP LOCKED
)
UPDATE redrive_dlq_copy c SET state = 'delete'
 WHERE c.dlq_id = %(dlq)b AND c.message_id = ANY (ARRAY (SELECT message_id FROM due)) AND c.state || '' = 'held'
"""


def mark_expiring_copies(dlq: int, *, limit: int, margin: float = RESCUE_SECONDS) -> int:
    """Mark the messages of unfinished letters for deletion if they expire within `margin` seconds; return how many."""
    return rows.execute(_RESCUE, {"dlq": dlq, "limit": limit, "margin": margin})


def most_urgent_first(some: Iterable[DeadLetterQueue]) -> list[DeadLetterQueue]:
    """Sort DLQs by the time at which SQS drops the first message of an unfinished letter; DLQs without any are last."""
    first = dlq_status.expiries()
    every = list(some)
    held = sorted((dlq for dlq in every if dlq.pk in first), key=lambda dlq: first[dlq.pk])
    return held + [dlq for dlq in every if dlq.pk not in first]
