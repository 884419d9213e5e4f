"""Assign parked letters to people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.models import User
from django.db.models import QuerySet

from reprocessing.store import rows

_ASSIGN = """
WITH was AS (
    SELECT l.id, l.dlq_id, l.assigned_to FROM redrive_letter l
     WHERE l.id = ANY(%(letters)b::bigint[]) AND l.state = 'parked' ORDER BY l.id FOR UPDATE
), moved AS (
    UPDATE redrive_letter l SET assigned_to = %(to)b::text FROM was WHERE l.id = was.id
)
INSERT INTO redrive_audit_entry (act, letter_id, dlq_id, by, reason, at, before, after, operation_id)
SELECT 'assigned', was.id, was.dlq_id, %(by)b, %(reason)b, redrive_now(),
       jsonb_build_object('assigned_to', was.assigned_to), jsonb_build_object('assigned_to', %(to)b::text),
       %(operation)b::bigint
  FROM was ORDER BY was.id
"""

_SINCE = """
SELECT DISTINCT ON (r.letter_id) r.letter_id, r.by, coalesce(r.after ->> 'assigned_to', '') AS "to"
  FROM redrive_audit_entry r
 WHERE r.letter_id = ANY(%(letters)b::bigint[]) AND r.at > %(since)b AND r.act = 'assigned'
   AND r.operation_id IS DISTINCT FROM %(operation)b::bigint
 ORDER BY r.letter_id, r.at DESC, r.id DESC
"""


@dataclass(frozen=True, slots=True)
class Assignment:
    """The latest assignment of a letter: the person `by` assigned it to the person `to` (empty: to nobody)."""

    letter_id: int
    by: str
    to: str


def assignable_people() -> QuerySet[User]:
    """Return the people to whom letters can be assigned: all who can use the admin, sorted by name."""
    return User.objects.filter(is_active=True, is_staff=True).order_by("username")


def assigned_since(letters: Sequence[int], *, since: datetime, operation: int | None) -> list[Assignment]:
    """Return the latest assignment after `since` of each letter; letters without such an assignment are left out.

    Assignments that the bulk action `operation` made are left out. If `operation` is None, assignments without a bulk
    action are left out.
    """
    return rows.fetch(Assignment, _SINCE, {"letters": list(letters), "since": since, "operation": operation})


def assign_letters(letters: Sequence[int], *, to: str, by: str, reason: str, operation: int | None) -> None:
    """Assign parked letters to the person `to` (empty: to nobody), with audit log entries.

    `operation`: id of the bulk action that assigns them; None: no bulk action.
    """
    values = {"letters": list(letters), "to": to, "by": by, "reason": reason, "operation": operation}
    rows.execute(_ASSIGN, values)
