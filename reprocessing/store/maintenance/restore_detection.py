"""Count the ticks of this database, which only rise: one that was restored from a backup has seen fewer."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from reprocessing.store import rows


@dataclass(frozen=True, slots=True)
class Stand:
    """How far this database has come."""

    database: UUID
    ticks: int


_RISE = """
INSERT INTO redrive_tide AS t (id, ticks) VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET ticks = t.ticks + 1
RETURNING t.database, t.ticks
"""

_STAND = "SELECT database, ticks FROM redrive_tide"

_CATCH_UP = "UPDATE redrive_tide SET ticks = %(ticks)b::bigint WHERE ticks < %(ticks)b::bigint"


def rise() -> Stand:
    """Count a tick; what is returned outside of a transaction is committed."""
    return rows.fetch(Stand, _RISE, {})[0]


def stand() -> Stand | None:
    """How far it has come; None before the first tick."""
    found = rows.fetch(Stand, _STAND, {})
    return found[0] if found else None


def catch_up(ticks: int) -> bool:
    """What had been known of it before it was restored is known here; False: it was already, so that it is told once.

    In a transaction nobody else counts or catches up until its end.
    """
    return rows.execute(_CATCH_UP, {"ticks": ticks}) == 1
