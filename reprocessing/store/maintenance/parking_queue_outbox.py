"""Read which messages must still be sent to parking queues, and record sent messages.

A parking queue is an SQS queue that gets a copy of each parked message of a DLQ. If a DLQ loses its parking queue,
messages that were not sent stay until their letters are deleted. If the DLQ gets a parking queue again, they are sent.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from reprocessing.store import rows
from reprocessing.store.payloads import content

logger = logging.getLogger(__name__)

#: Highest number of batches that one call reads until it finds a letter that can be decrypted.
_BATCHES: Final = 20


@dataclass(frozen=True, slots=True)
class PendingMessage:
    """A message about a letter, to be sent to the parking queue: the letter was parked, or is no longer parked.

    `parking_event` says which. In the second case, `body` is empty.
    """

    notice_id: int
    parking_event: str
    public_id: UUID
    message_id: str
    reason: str
    state: str
    body: bytes
    attributes: bytes


# The letters of one call have a bounded size. Only messages about parked letters need the body.
_OWED = """
SELECT o.notice_id, o.parking_event, o.public_id, o.message_id, o.reason, o.state,
       coalesce(p.attributes, '{}') AS attributes,
       CASE WHEN o.parking_event = 'parked' THEN coalesce(p.body, '') ELSE ''::bytea END AS body
  FROM (SELECT *, sum(size) OVER (ORDER BY notice_id) - size AS before
          FROM (SELECT n.id AS notice_id, n.parking_event, l.id, l.public_id, l.message_id, l.reason, l.state,
                       CASE WHEN n.parking_event = 'parked' THEN l.size ELSE 0 END AS size
                  FROM redrive_parking_queue_message n JOIN redrive_letter l ON l.id = n.letter_id
                 WHERE n.sent_at IS NULL AND n.dlq_id = %(dlq)b AND n.id > %(above)b
                 ORDER BY n.id LIMIT %(limit)b) first) o
  LEFT JOIN redrive_payload p ON p.letter_id = o.id
 WHERE o.before < 16777216
 ORDER BY o.notice_id
"""

_SENT = """
UPDATE redrive_parking_queue_message SET sent_at = redrive_now() WHERE id = ANY(%(ids)b::bigint[]) AND sent_at IS NULL
"""


def pending_messages(dlq: int, *, limit: int) -> list[PendingMessage]:
    """Return the oldest messages that are to be sent to this DLQ's parking queue: up to `limit`, or about 16 MiB.

    Messages about letters that cannot be decrypted now are left out, until the letters' keys are available. If all
    `limit` messages that were read are left out, the next messages are read, up to 20 times (`_BATCHES`).
    """
    above = 0
    for _ in range(_BATCHES):
        found = rows.fetch(PendingMessage, _OWED, {"dlq": dlq, "limit": limit, "above": above})
        readable, problems = content.opened_or_why(found)
        if problems:
            why = next(iter(problems.values()))
            logger.warning("%d messages are not sent to their parking queue: %s", len(problems), why)
        if readable or not found:
            return readable
        above = found[-1].notice_id
    return []


def record_sent(ids: Sequence[int]) -> None:
    """Record that these messages (by `notice_id`) were sent to their parking queue."""
    rows.execute(_SENT, {"ids": list(ids)})
