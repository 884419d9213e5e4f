"""Record which DLQs redrive_doctor has checked automatically, so that all DLQs are checked in turn."""

from __future__ import annotations

from typing import Final, LiteralString

from reprocessing.store import rows

_NEXT: Final[LiteralString] = """
WITH last AS MATERIALIZED (
    SELECT coalesce((SELECT value FROM redrive_metric WHERE (name, place, part) = ('doctor', 0, 'dlq')), 0) AS id
), turns AS (
    SELECT d.id, d.id <= last.id AS again FROM redrive_dlq d CROSS JOIN last
     ORDER BY d.id <= last.id, d.id LIMIT %(limit)b::int
), noted AS (
    INSERT INTO redrive_metric AS m (name, place, part, value)
    SELECT 'doctor', 0, 'dlq', id FROM turns ORDER BY again DESC, id DESC LIMIT 1
    ON CONFLICT (name, place, part) DO UPDATE SET value = excluded.value
)
SELECT id FROM turns ORDER BY again, id
"""


def next_dlqs(limit: int) -> list[int]:
    """Return the ids of the next `limit` DLQs to check, the longest unchecked first, and record them as checked now."""
    return rows.column(int, _NEXT, {"limit": limit})
