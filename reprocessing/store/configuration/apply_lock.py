"""Take the PostgreSQL advisory lock that lets only one `apply_config` write at a time."""

from __future__ import annotations

from typing import Final

from reprocessing.store import rows

_LOCK: Final = "SELECT pg_advisory_xact_lock(hashtext('redrive configuration'))"


def lock_applies() -> None:
    """Wait until no other `apply_config` holds the lock; hold the lock until the end of the caller's transaction."""
    rows.execute(_LOCK, {})
