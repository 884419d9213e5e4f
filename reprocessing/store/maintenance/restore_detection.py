"""Count the ticks of this database. After a restore from a backup the count is lower than the highest count seen."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from reprocessing.store import rows


@dataclass(frozen=True, slots=True)
class Stand:
    """Identity and tick count of this database."""

    database: UUID
    ticks: int


_RISE = """
INSERT INTO redrive_tide AS t (id, ticks) VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET ticks = t.ticks + 1
RETURNING t.database, t.ticks
"""

_STAND = "SELECT database, ticks FROM redrive_tide"

_CATCH_UP = "UPDATE redrive_tide SET ticks = %(ticks)b::bigint WHERE ticks < %(ticks)b::bigint"


def rise() -> Stand:
    """Count a tick; outside a transaction the returned count is committed."""
    return rows.fetch(Stand, _RISE, {})[0]


def stand() -> Stand | None:
    """Return the tick count; None before the first tick."""
    found = rows.fetch(Stand, _STAND, {})
    return found[0] if found else None


def catch_up(ticks: int) -> bool:
    """Raise the count to the highest seen before a restore; return False if it was raised already.

    The caller's transaction locks the row until its end.
    """
    return rows.execute(_CATCH_UP, {"ticks": ticks}) == 1
