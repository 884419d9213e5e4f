"""Mark the messages that are kept in a DLQ for deletion shortly before SQS drops them at the end of the retention.

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

# Held copies are read in the order of `expires_at`, up to `margin` seconds from now: only the start of the index
# `held_copies_by_expiry`. A copy that was marked is no longer in this index, so a later call does not read it again.
# With the lower bound '-infinity' PostgreSQL expects few copies, and chooses this index. The copies to change are found
# by their message ids: `state || ''` keeps PostgreSQL from the indexes of all held copies. Locked copies are left to
# the next call. A finished letter's copy is to be deleted in any case.
_RESCUE = """
WITH due AS (
    SELECT message_id FROM redrive_dlq_copy
     WHERE dlq_id = %(dlq)b AND state = 'held'
       AND expires_at BETWEEN '-infinity' AND (SELECT redrive_now() + make_interval(secs => %(margin)b::float8))
     ORDER BY expires_at LIMIT %(limit)b FOR UPDATE SKIP LOCKED
)
UPDATE redrive_dlq_copy c SET state = 'delete'
 WHERE c.dlq_id = %(dlq)b AND c.message_id = ANY (ARRAY (SELECT message_id FROM due)) AND c.state || '' = 'held'
"""


def mark_expiring_copies(dlq: int, *, limit: int, margin: float = RESCUE_SECONDS) -> int:
    """Mark the kept messages of a DLQ for deletion if they expire within `margin` seconds; return how many.

    Of more than `limit` messages, mark those that expire first.
    """
    return rows.execute(_RESCUE, {"dlq": dlq, "limit": limit, "margin": margin})


def most_urgent_first(some: Iterable[DeadLetterQueue]) -> list[DeadLetterQueue]:
    """Sort DLQs by the time at which SQS drops the first message of an unfinished letter; DLQs without any are last."""
    first = dlq_status.expiries()
    every = list(some)
    held = sorted((dlq for dlq in every if dlq.pk in first), key=lambda dlq: first[dlq.pk])
    return held + [dlq for dlq in every if dlq.pk not in first]
