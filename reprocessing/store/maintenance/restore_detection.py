"""Count beat's ticks in this database, to notice that the database was restored from a backup.

A tick is a task that beat sends every 2 seconds. Ticks are also counted in Redis. After a restore, the count in the
database is lower than the count in Redis.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from reprocessing.store import rows


@dataclass(frozen=True, slots=True)
class DatabaseTicks:
    """The id of a database (a restored database has the id of its backup), and its count of beat's ticks."""

    database: UUID
    ticks: int


_RISE = """
INSERT INTO redrive_tick_count AS t (id, ticks) VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET ticks = t.ticks + 1
RETURNING t.database, t.ticks
"""

_STAND = "SELECT database, ticks FROM redrive_tick_count"

_CATCH_UP = "UPDATE redrive_tick_count SET ticks = %(ticks)b::bigint WHERE ticks < %(ticks)b::bigint"


def count_tick() -> DatabaseTicks:
    """Add 1 to the count of beat's ticks, and return it. If no transaction is open, the new count is committed."""
    return rows.fetch(DatabaseTicks, _RISE, {})[0]


def read_ticks() -> DatabaseTicks | None:
    """Return the database's count of beat's ticks; None before the first tick."""
    return rows.first(DatabaseTicks, _STAND, {})


def raise_ticks(ticks: int) -> bool:
    """Raise the count of beat's ticks to `ticks`, the count before a restore; return False if it is that high already.

    The count's row stays locked until the caller's transaction ends.
    """
    return rows.execute(_CATCH_UP, {"ticks": ticks}) == 1
