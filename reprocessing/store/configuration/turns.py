"""Let only one apply of a configuration write at a time."""

from __future__ import annotations

from typing import Final

from reprocessing.store import rows

_TAKE: Final = "SELECT pg_advisory_xact_lock(hashtext('redrive configuration'))"


def take_turn() -> None:
    """Wait until no other transaction has the turn, and take it until the end of the caller's transaction."""
    rows.execute(_TAKE, {})
