"""Export the letters that a filter matches when the export begins, in chunks of bounded size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, LiteralString
from uuid import UUID

from reprocessing.domain.parking_lot.message_filter import MessageFilter
from reprocessing.store import rows
from reprocessing.store.payloads import content
from reprocessing.store.search import filter_conditions

#: Highest number of letters, and of their bytes, in one chunk; a larger letter is a chunk by itself.
PIECE, WEIGHT = 1_000, 16 * 1024 * 1024
_LARGEST: Final = 1_048_576  # bytes of a message of SQS


@dataclass(frozen=True, slots=True)
class ExportBound:
    """The moment at which an export began: letters captured or finished later are not exported."""

    max_letter_id: int
    asked_at: datetime


@dataclass(frozen=True, slots=True)
class ExportedLetter:
    """An exported letter.

    The bytes that would be sent, and the captured bytes of an edited letter (`original_*`), are included only on
    request.
    """

    id: int
    redrive_id: UUID
    message_id: str
    dlq: str
    source: str | None
    target: str | None
    state: str
    reason: str
    ordering_key: str | None
    idempotency_key: str | None
    attempts: int
    size: int
    first_sent_at: datetime
    captured_at: datetime
    finished_at: datetime | None
    expires_at: datetime | None
    assigned_to: str
    group: str | None
    edited: bool
    body: bytes | None
    attributes: bytes | None
    original_body: bytes | None
    original_attributes: bytes | None
    unreadable: str = ""  #: why the bytes cannot be decrypted; empty: they can


_BOUND = "SELECT coalesce(max(id), 0) AS max_letter_id, redrive_now() AS asked_at FROM redrive_letter"

_PIECE: Final[LiteralString] = """
SELECT l.id, l.public_id AS redrive_id, l.message_id, d.name AS dlq, o.arn AS source, t.arn AS target, l.state,
       l.reason, l.ordering_key, l.idempotency_key, l.attempts, l.size, l.first_sent_at, l.captured_at, l.finished_at,
       l.expires_at, l.assigned_to, coalesce(nullif(g.name, ''), g.title) AS group, l.revision_id IS NOT NULL AS edited,
       CASE WHEN %(bodies)b::bool THEN coalesce(v.body, p.body) END AS body,
       CASE WHEN %(bodies)b::bool THEN coalesce(v.attributes, p.attributes) END AS attributes,
       CASE WHEN v.id IS NOT NULL AND %(originals)b::bool THEN p.body END AS original_body,
       CASE WHEN v.id IS NOT NULL AND %(originals)b::bool THEN p.attributes END AS original_attributes
  FROM (SELECT f.*, sum(f.weight) OVER (ORDER BY f.id) - f.weight AS before
          FROM (SELECT l.*, l.size + CASE WHEN l.revision_id IS NOT NULL AND %(originals)b::bool
                                          THEN %(largest)b::int ELSE 0 END AS weight
                  FROM redrive_letter l
                 WHERE l.id > %(above)b::bigint AND l.id <= %(max_letter_id)b::bigint
                   AND coalesce(l.finished_at <= %(asked_at)b, true) AND {where}
                 ORDER BY l.id LIMIT %(limit)b) f) l
  JOIN redrive_dlq d ON d.id = l.dlq_id LEFT JOIN redrive_source o ON o.id = l.source_id
  LEFT JOIN redrive_target t ON t.id = l.target_id LEFT JOIN redrive_failure_group m ON m.id = l.group_id
  LEFT JOIN redrive_failure_group g ON g.id = coalesce(m.merged_into_id, m.id)
  LEFT JOIN redrive_payload p ON p.letter_id = l.id AND %(bodies)b::bool
  LEFT JOIN redrive_revision v ON v.id = l.revision_id AND %(bodies)b::bool
 WHERE NOT %(bodies)b::bool OR l.before < %(weight)b::bigint
 ORDER BY l.id
"""


def current_bound() -> ExportBound:
    """Return the bound of an export that begins now: letters captured or finished later are not exported."""
    return rows.fetch(ExportBound, _BOUND, {})[0]


def export_letters(
    criteria: MessageFilter, until: ExportBound, *, bodies: bool, originals: bool = False
) -> Iterator[ExportedLetter]:
    """Yield the letters that a filter matches, sorted by id.

    A letter whose state changes during the export may be missing.

    `bodies`: include the bytes that would be sent. `originals`: include the captured bytes of edited letters.
    """
    asked = filter_conditions.sql_parameters(criteria) | {
        "max_letter_id": until.max_letter_id, "asked_at": until.asked_at, "limit": PIECE, "weight": WEIGHT,
        "bodies": bodies,
        "originals": bodies and originals, "largest": _LARGEST, "above": 0,
    }  # fmt: skip
    statement = _PIECE.format(where=filter_conditions.where_clause(criteria, whole=True))
    while found := rows.fetch(ExportedLetter, statement, asked):
        readable, problems = content.opened_or_why(found)
        opened = {letter.id: letter for letter in readable}
        yield from (
            opened.get(letter.id) or replace(letter, unreadable=problems[letter.message_id]) for letter in found
        )
        asked["above"] = found[-1].id
