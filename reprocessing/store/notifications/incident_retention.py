"""Delete incidents past their retention (`history`, in seconds), with their notifications."""

from __future__ import annotations

from typing import Final, LiteralString

from reprocessing.store import rows

_DELETE: Final[LiteralString] = """
WITH old AS MATERIALIZED (
    SELECT id FROM redrive_incident WHERE ended_at < redrive_now() - make_interval(secs => %(history)b::float8)
     ORDER BY ended_at LIMIT %(limit)b::int FOR UPDATE SKIP LOCKED
), told AS (
    DELETE FROM redrive_notification n USING old WHERE n.incident_id = old.id
)
DELETE FROM redrive_incident i USING old WHERE i.id = old.id
"""


def delete_incidents(*, history: float, limit: int) -> int:
    """Delete up to `limit` incidents that ended more than `history` seconds ago; return how many."""
    return rows.execute(_DELETE, {"history": history, "limit": limit})
