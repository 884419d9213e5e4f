"""Count the parked messages of each DLQ, and find out since when the oldest is parked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, LiteralString

from reprocessing.store import rows
from reprocessing.store.maintenance.counters import COUNTS

# Reads the stored counts, and one index entry for each DLQ.
_PARKED: Final[LiteralString] = f"""
SELECT d.id AS dlq_id, d.name, k.n::bigint AS messages,
       extract(epoch FROM redrive_now() - oldest.finished_at)::float8 AS seconds
  FROM (SELECT dlq_id, sum(n) AS n FROM {COUNTS} c WHERE state = 'parked' GROUP BY dlq_id HAVING sum(n) > 0) k
  JOIN redrive_dlq d ON d.id = k.dlq_id
 CROSS JOIN LATERAL (
       SELECT l.finished_at FROM redrive_letter l WHERE l.dlq_id = d.id AND l.state = 'parked'
        ORDER BY l.finished_at LIMIT 1) oldest
 ORDER BY d.id
"""  # noqa: S608  # the inserted text is a constant


@dataclass(frozen=True, slots=True)
class ParkedMessages:
    """The number of parked messages of a DLQ, and for how many seconds the oldest has been parked."""

    dlq_id: int
    name: str
    messages: int
    seconds: float


def parked_messages() -> list[ParkedMessages]:
    """Return the count and age of parked messages, for each DLQ that has some."""
    return rows.fetch(ParkedMessages, _PARKED, {})
