"""Copies that SQS is about to drop are given up before it does: from then on PostgreSQL alone holds their letters.

A copy that expires vanishes without a word, which looks like one that somebody else has taken. One that was deleted on
purpose is known to be gone.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from reprocessing.models.dlq import DeadLetterQueue
from reprocessing.store import rows
from reprocessing.store.dlqs import dlq_status

#: Seconds before SQS drops a copy. AWS: a message's time counts from its first queue's SentTimestamp on in a standard
#: dead-letter queue, and from its move in a FIFO one, where nothing is held.
MARGIN: Final = 3_600.0

# In the order in which they expire, and no further than the hour that is asked for: the clock, asked once, bounds the
# index. Each letter's copies are found by the letter, not among all that are held. One that somebody else is at has
# another turn.
_RESCUE = """
WITH due AS (
    SELECT c.dlq_id, c.message_id FROM redrive_letter l CROSS JOIN LATERAL (
            SELECT k.dlq_id, k.message_id FROM redrive_custody k
             WHERE k.letter_id = l.id AND k.dlq_id = %(dlq)b AND k.state || '' = 'held' OFFSET 0) c
     WHERE l.dlq_id = %(dlq)b AND l.finished_at IS NULL
       AND l.expires_at <= (SELECT redrive_now() + make_interval(secs => %(margin)b::float8))
     ORDER BY l.expires_at, l.id LIMIT %(limit)b FOR UPDATE OF c SKIP LOCKED
)
UPDATE redrive_custody c SET state = 'delete'
  FROM due WHERE (c.dlq_id, c.message_id) = (due.dlq_id, due.message_id) AND c.state = 'held'
"""


def take(dlq: int, *, limit: int, margin: float = MARGIN) -> int:
    """Mark for deletion the copies of unfinished letters that expire next, within `margin` seconds; how many."""
    return rows.execute(_RESCUE, {"dlq": dlq, "limit": limit, "margin": margin})


def most_urgent_first(some: Iterable[DeadLetterQueue]) -> list[DeadLetterQueue]:
    """Dlqs in the order in which SQS drops the first copy of each; those that hold none come last."""
    first = dlq_status.expiries()
    every = list(some)
    held = sorted((one for one in every if one.pk in first), key=lambda one: first[one.pk])
    return held + [one for one in every if one.pk not in first]
