"""The statements of the outbox towards parking queues."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from reprocessing.models import rows


@dataclass(frozen=True, slots=True)
class Owed:
    """One notice to send, with the letter as it was captured."""

    notice_id: int
    news: str
    public_id: UUID
    message_id: str
    reason: str
    state: str
    body: bytes
    attributes: bytes


@dataclass(frozen=True, slots=True)
class _Id:
    notice_id: int


_OWED = """
SELECT n.id AS notice_id, n.news, l.public_id, l.message_id, l.reason, l.state, p.body, p.attributes
  FROM redrive_notice n JOIN redrive_letter l ON l.id = n.letter_id JOIN redrive_payload p ON p.letter_id = l.id
 WHERE n.sent_at IS NULL AND l.dlq_id = %(dlq)b ORDER BY n.id LIMIT %(limit)b
"""

_SENT = "UPDATE redrive_notice SET sent_at = redrive_now() WHERE id = ANY(%(ids)b::bigint[]) AND sent_at IS NULL"


def owed(dlq: int, *, limit: int) -> list[Owed]:
    """The oldest notices that this dlq's parking queue was not sent yet."""
    return rows.fetch(Owed, _OWED, {"dlq": dlq, "limit": limit})


def sent(ids: Sequence[int]) -> None:
    """Remember that these were sent."""
    rows.execute(_SENT, {"ids": list(ids)})
