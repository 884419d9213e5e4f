"""Show people the largest failure groups, and store the status that a person sets for a group."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from reprocessing.models.audit import AuditAct
from reprocessing.models.parking_lot import FailureGroupStatus
from reprocessing.store import rows
from reprocessing.store.maintenance.counters import COUNTS
from reprocessing.store.rights.visible_dlqs import EVERY_DLQ, VisibleDlqs

_SETTLE = """
WITH settled AS (
    UPDATE redrive_failure_group g
       SET status = %(status)b, note = %(note)b, assigned_to = %(to)b,
           status_by = CASE WHEN %(moves)b THEN %(by)b ELSE g.status_by END,
           settled_at = CASE WHEN %(moves)b THEN redrive_now() ELSE g.settled_at END
     WHERE g.id = %(group)b AND g.status = %(seen_status)b AND g.note = %(seen_note)b AND g.assigned_to = %(seen_to)b
    RETURNING g.id, g.dlq_id
)
INSERT INTO redrive_audit_entry (act, group_id, dlq_id, by, reason, at, before, after)
SELECT %(act)b, id, dlq_id, %(by)b, %(reason)b, redrive_now(),
       jsonb_build_object('status', %(seen_status)b::text, 'note', %(seen_note)b::text)
           || CASE WHEN %(assigns)b THEN jsonb_build_object('assigned to', %(seen_to)b::text) ELSE '{}' END,
       jsonb_build_object('status', %(status)b::text, 'note', %(note)b::text)
           || CASE WHEN %(assigns)b THEN jsonb_build_object('assigned to', %(to)b::text) ELSE '{}' END
  FROM settled
"""

_WORST = f"""
SELECT g.id, g.dlq_id, coalesce(nullif(g.name, ''), g.title) AS title, t.first_at, t.last_at, t.n
  FROM (SELECT coalesce(m.merged_into_id, m.id) AS id, sum(c.n)::bigint AS n, min(m.first_at) AS first_at,
               max(m.last_at) AS last_at
          FROM {COUNTS} c JOIN redrive_failure_group m ON m.id = c.group_id
         WHERE c.state IN ('captured', 'parked') GROUP BY 1 HAVING sum(c.n) > 0) t
  JOIN redrive_failure_group g ON g.id = t.id
 WHERE g.status = 'open' AND (%(dlqs)b::bigint[] IS NULL OR g.dlq_id = ANY(%(dlqs)b::bigint[]))
 ORDER BY t.n DESC, t.last_at DESC, g.id DESC LIMIT %(limit)b
"""  # noqa: S608  # the inserted text is a constant


@dataclass(frozen=True, slots=True)
class LargestGroup:
    """An open failure group, and how many of its letters (`n`) are captured or parked."""

    id: int
    dlq_id: int
    title: str
    first_at: datetime
    last_at: datetime
    n: int


def set_status(  # noqa: PLR0913  # each by its name
    group: int, *, status: FailureGroupStatus, note: str, seen_status: str, seen_note: str, by: str, reason: str,
    to: str = "", seen_to: str = "",
) -> bool:  # fmt: skip
    """Set a failure group's status, note and assignee (`to`; empty: nobody), with an audit log entry.

    If somebody changed status, note or assignee after the person saw them (`seen_*`), change nothing and return False.
    """
    moves = status != seen_status
    values = {
        "group": group, "status": status.value, "note": note, "seen_status": seen_status, "seen_note": seen_note,
        "moves": moves, "by": by, "reason": reason, "to": to, "seen_to": seen_to, "assigns": to != seen_to,
        "act": (AuditAct.CHANGED if moves or to != seen_to else AuditAct.NOTED).value,
    }  # fmt: skip
    return rows.execute(_SETTLE, values) == 1


def largest_groups(limit: int, *, seen: VisibleDlqs = EVERY_DLQ) -> list[LargestGroup]:
    """Return up to `limit` open groups with the most captured or parked letters, of DLQs that the person may see."""
    return rows.fetch(LargestGroup, _WORST, {"limit": limit, "dlqs": seen.array})
