"""The statement that says who sees to parked letters."""

from __future__ import annotations

from collections.abc import Sequence

from reprocessing.models import rows

_ASSIGN = """
WITH was AS (
    SELECT l.id, l.dlq_id, l.assigned_to FROM redrive_letter l
     WHERE l.id = ANY(%(letters)b::bigint[]) AND l.state = 'parked' ORDER BY l.id FOR UPDATE
), moved AS (
    UPDATE redrive_letter l SET assigned_to = %(to)b::text FROM was WHERE l.id = was.id
)
INSERT INTO redrive_review (act, letter_id, dlq_id, by, reason, at, before, after, operation_id)
SELECT 'assigned', was.id, was.dlq_id, %(by)b, %(reason)b, redrive_now(),
       jsonb_build_object('assigned_to', was.assigned_to), jsonb_build_object('assigned_to', %(to)b::text),
       %(operation)b::bigint
  FROM was ORDER BY was.id
"""


def assign(letters: Sequence[int], *, to: str, by: str, reason: str, operation: int | None) -> None:
    """Say who sees to parked letters, and record it; empty: nobody."""
    values = {"letters": list(letters), "to": to, "by": by, "reason": reason, "operation": operation}
    rows.execute(_ASSIGN, values)
