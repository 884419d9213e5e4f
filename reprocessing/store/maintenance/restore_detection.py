"""Count beat's ticks in this database. After a restore from a backup, the count is lower than the count in Redis."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from reprocessing.store import rows


@dataclass(frozen=True, slots=True)
class DatabaseTicks:
    """The id of a database, which its restored copies share, and its tick count."""

    database: UUID
    ticks: int


_RISE = """
INSERT INTO redrive_tick_count AS t (id, ticks) VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET ticks = t.ticks + 1
RETURNING t.database, t.ticks
"""

_STAND = "SELECT database, ticks FROM redrive_tick_count"

_CATCH_UP = "UPDATE redrive_tick_count SET ticks = %(ticks)b::bigint WHERE ticks < %(ticks)b::bigint"


def count_tick() -> DatabaseTicks:
    """Add 1 to the tick count and return it. If no transaction is open, the returned count is committed."""
    return rows.fetch(DatabaseTicks, _RISE, {})[0]


def read_ticks() -> DatabaseTicks | None:
    """Return the tick count; None before the first tick."""
    return rows.first(DatabaseTicks, _STAND, {})


def raise_ticks(ticks: int) -> bool:
    """Raise the count to the highest count before a restore; return False if the count was raised already.

    The row stays locked until the caller's transaction ends.
    """
    return rows.execute(_CATCH_UP, {"ticks": ticks}) == 1
