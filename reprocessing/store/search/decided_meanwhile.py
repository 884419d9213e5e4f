"""Find who changed letters that a filter matched, so that the message about a refused bulk action names the person."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, LiteralString

from reprocessing.domain.errors import InvalidFilter
from reprocessing.domain.parking_lot.message_filter import MessageFilter
from reprocessing.models import AuditAct
from reprocessing.store import rows
from reprocessing.store.search import filter_conditions

#: Only this number of the newest audit log entries is read.
_READ: Final = 20_000
#: Max people and acts that are returned.
_MOST: Final = 3

_DECIDED: Final[LiteralString] = """
SELECT a.act, a.by, count(DISTINCT a.letter_id) AS letters, max(a.at) AS at
  FROM (SELECT * FROM redrive_audit_entry ORDER BY id DESC LIMIT %(read)b) a JOIN redrive_letter l ON l.id = a.letter_id
 WHERE a.at > %(since)b::timestamptz AND a.act = ANY(%(acts)b::text[])
   AND (a.act IN ('edited', 'assigned') OR a.before ->> 'state' = ANY(%(was)b::text[]))
   AND (%(why)b::text[] = '{{}}' OR a.before ->> 'reason' IS NULL OR a.before ->> 'reason' = ANY(%(why)b::text[]))
   AND {where}
 GROUP BY a.act, a.by ORDER BY max(a.at) DESC LIMIT %(most)b
"""


@dataclass(frozen=True, slots=True)
class DecidedMeanwhile:
    """What a person did to letters that a filter matched, to how many letters, and when most recently."""

    act: str
    by: str
    letters: int
    at: datetime


def decided_since(criteria: MessageFilter, since: datetime) -> list[DecidedMeanwhile]:
    """Return who changed letters that matched a filter, and how: up to 3 pairs of person and act, the latest first.

    The result is empty for filters that read bodies, and if the search takes too long. Only the newest 20,000 entries
    of the audit log are read.
    """
    if criteria.reads_bodies:
        return []
    before = replace(criteria, states=(), reasons=(), assigned=None, finished_after=None, finished_before=None)
    acts = [AuditAct.RELEASED, AuditAct.DISCARDED, AuditAct.RESTORED, AuditAct.EDITED]
    acts += [AuditAct.ASSIGNED] if criteria.assigned is not None else []
    try:
        with filter_conditions.search_timeout():
            asked = filter_conditions.parameters_within_timeout(before) | {
                "since": since, "acts": [act.value for act in acts], "was": list(criteria.states),
                "why": list(criteria.reasons), "read": _READ, "most": _MOST,
            }  # fmt: skip
            return rows.fetch(DecidedMeanwhile, _DECIDED.format(where=filter_conditions.where_clause(before)), asked)
    except InvalidFilter:
        return []
