"""Read the audit log in the order in which it was written, in pages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from reprocessing.domain.approvals.person import history_pattern
from reprocessing.models import AuditEntry
from reprocessing.store import rows
from reprocessing.store.rights.visible_dlqs import EVERY_DLQ, VisibleDlqs

_CHUNK: Final = 1_000


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One audit log entry.

    Attributes:
        operation: the id of the bulk action that changed the letter. If `letter` is None, the entry is about the whole
            bulk action.
    """

    id: int
    at: datetime
    act: str
    by: str
    reason: str
    operation: int | None
    dlq: str | None
    letter: UUID | None
    message_id: str | None
    group: int | None
    run: str | None
    target: str | None
    rule: str | None
    before: dict[str, Any]
    after: dict[str, Any]


@dataclass(frozen=True, slots=True)
class LogFilter:
    """A filter of audit log entries. A field that is None matches every entry.

    `since`, `until`: the entry was written at or after `since`, and before `until`. `by`: a person who acted or
    approved. `operation`: the id of a bulk action.
    """

    since: datetime | None = None
    until: datetime | None = None
    by: str | None = None
    operation: int | None = None


_ENTRIES = """
SELECT v.id, v.at, v.act, v.by, v.reason, v.operation_id AS operation, d.name AS dlq, l.public_id AS letter,
       l.message_id, v.group_id AS group, r.name AS run, t.arn AS target, u.name AS rule, v.before, v.after
  FROM redrive_audit_entry v
  LEFT JOIN redrive_dlq d ON d.id = v.dlq_id LEFT JOIN redrive_letter l ON l.id = v.letter_id
  LEFT JOIN redrive_run r ON r.id = v.run_id LEFT JOIN redrive_target t ON t.id = v.target_id
  LEFT JOIN redrive_rule u ON u.id = v.rule_id
 WHERE v.id > %(above)b AND (%(among)b::bigint[] IS NULL OR v.id = ANY(%(among)b::bigint[]))
   AND (%(since)b::timestamptz IS NULL OR v.at >= %(since)b::timestamptz)
   AND (%(until)b::timestamptz IS NULL OR v.at < %(until)b::timestamptz)
   AND (%(by)b::text IS NULL OR v.by ~ %(by)b::text)
   AND (%(operation)b::bigint IS NULL OR v.operation_id = %(operation)b::bigint)
 ORDER BY v.id LIMIT %(limit)b
"""


def log_entries(span: LogFilter, *, seen: VisibleDlqs = EVERY_DLQ) -> Iterator[LogEntry]:
    """Yield the audit log entries that a filter matches, the oldest first. Entries written meanwhile may be included.

    `seen`: only entries about the DLQs that the person who asks may see.
    """
    if not seen.are_all:
        yield from _seen_entries(span, seen)
        return
    values = _values(span)
    while found := rows.fetch(LogEntry, _ENTRIES, values):
        yield from found
        values["above"] = found[-1].id


def _seen_entries(span: LogFilter, seen: VisibleDlqs) -> Iterator[LogEntry]:
    above = 0
    while True:
        there = seen.rows(AuditEntry.objects.filter(pk__gt=above)).order_by("pk").values_list("pk", flat=True)
        among = list(there[:_CHUNK])
        if not among:
            return
        yield from rows.fetch(LogEntry, _ENTRIES, _values(span) | {"among": among})
        above = among[-1]


def _values(span: LogFilter) -> dict[str, Any]:
    return {
        "since": span.since, "until": span.until, "by": None if span.by is None else history_pattern(span.by),
        "operation": span.operation, "above": 0,
        "among": None, "limit": _CHUNK,
    }  # fmt: skip
