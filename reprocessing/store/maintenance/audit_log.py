"""Read the audit log in the order in which it was written, in pages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db.models import F, Max, Min, QuerySet

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
 WHERE v.id = ANY(%(ids)b::bigint[]) ORDER BY v.id
"""

# Steps from author to author in an index. With DISTINCT, PostgreSQL would read all entries.
_AUTHORS = """
WITH RECURSIVE author AS (
    SELECT (SELECT v.by FROM redrive_audit_entry v ORDER BY v.by LIMIT 1) AS name
     UNION ALL
    SELECT (SELECT v.by FROM redrive_audit_entry v WHERE v.by > a.name ORDER BY v.by LIMIT 1)
      FROM author a WHERE a.name IS NOT NULL
)
SELECT name FROM author WHERE name ~ %(pattern)b
"""


def authors(name: str) -> list[str]:
    """Return the authors of entries of which a person is part, such as "ann" and "ann, approved by bob" for "bob"."""
    return rows.column(str, _AUTHORS, {"pattern": history_pattern(name)})


def log_entries(span: LogFilter, *, seen: VisibleDlqs = EVERY_DLQ) -> Iterator[LogEntry]:
    """Yield the audit log entries that a filter matches, the oldest first. Entries written meanwhile may be included.

    `seen`: only entries about the DLQs that the person who asks may see.
    """
    matching = seen.rows(_matching(span)).order_by("pk").values_list("pk", flat=True)
    above = 0
    while ids := list(matching.filter(pk__gt=above)[:_CHUNK]):
        yield from rows.fetch(LogEntry, _ENTRIES, {"ids": ids})
        above = ids[-1]


def _matching(span: LogFilter) -> QuerySet[AuditEntry]:
    """Return the entries that a filter matches.

    A period is also a range of ids: entries are read in the order of their ids, from the first one of the period.
    """
    found = AuditEntry.objects.all()
    if span.since is not None:
        found = found.filter(at__gte=span.since)
    if span.until is not None:
        found = found.filter(at__lt=span.until)
    if span.since is not None or span.until is not None:
        # With the bare column, PostgreSQL would look for the first entry of the period in the index of ids.
        ends = found.aggregate(first=Min(F("pk") + 0), last=Max(F("pk") + 0))
        if ends["first"] is None:
            return found.none()
        found = found.filter(pk__gte=ends["first"])
        found = found if span.until is None else found.filter(pk__lte=ends["last"])
    if span.by is not None:
        found = found.filter(by__in=authors(span.by))
    return found if span.operation is None else found.filter(operation=span.operation)
