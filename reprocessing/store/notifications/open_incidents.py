"""Read which incidents are open, and find open incidents whose cause has ended."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, LiteralString

from reprocessing.domain.notifications.event import EventKind
from reprocessing.store import rows

_OPEN: Final[LiteralString] = """
SELECT kind, subject FROM redrive_incident WHERE ended_at IS NULL AND kind = ANY(%(kinds)b::text[])
"""

_FINDINGS: Final[LiteralString] = """
SELECT subject, dlq_id FROM redrive_incident WHERE ended_at IS NULL AND kind = 'doctor_worse'
"""

# Open incidents whose breaker or run was deleted, or changed by hand in PostgreSQL.
_LEFT_OPEN: Final[LiteralString] = """
SELECT i.kind, i.subject FROM redrive_incident i
 WHERE i.ended_at IS NULL AND CASE
       WHEN i.kind = 'breaker_open' THEN NOT EXISTS (
            SELECT FROM redrive_breaker b WHERE b.id = split_part(i.subject, ':', 2)::bigint AND b.state <> 'closed')
       WHEN i.kind IN ('run_stopped', 'redrive_loop') THEN NOT EXISTS (
            SELECT FROM redrive_run r WHERE r.id = split_part(i.subject, ':', 2)::bigint AND r.state = 'paused')
       WHEN i.kind = 'restore_detected' THEN NOT EXISTS (SELECT FROM redrive_global_stop WHERE id = 2)
       ELSE false END
"""


@dataclass(frozen=True, slots=True)
class _Place:
    kind: str
    subject: str


@dataclass(frozen=True, slots=True)
class _Finding:
    subject: str
    dlq_id: int | None


def open_incidents(kinds: Collection[EventKind]) -> set[tuple[EventKind, str]]:
    """Return the open incidents of these kinds, as pairs (kind, subject), such as (RUN_STOPPED, "run:17")."""
    found = rows.fetch(_Place, _OPEN, {"kinds": [kind.value for kind in kinds]})
    return {(EventKind(place.kind), place.subject) for place in found}


def open_findings() -> dict[str, int | None]:
    """Return the open incidents about problems that redrive_doctor found: the DLQ's id, by the incident's subject.

    The subject is a text that says what the incident is about. None: the problem does not concern a DLQ.
    """
    return {finding.subject: finding.dlq_id for finding in rows.fetch(_Finding, _FINDINGS, {})}


def orphaned_incidents() -> list[tuple[EventKind, str]]:
    """Return open incidents whose cause has ended, as pairs (kind, subject), such as (RUN_STOPPED, "run:17").

    The cause has ended if the incident's breaker is closed, its run is not paused, or its hold after a restore is over.
    """
    return [(EventKind(place.kind), place.subject) for place in rows.fetch(_Place, _LEFT_OPEN, {})]
