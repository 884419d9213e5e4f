"""Delete expired claims."""

from __future__ import annotations

from reprocessing.idempotency import conf, table

BATCH = 1_000


def purge(*, using: str | None = None, batch: int = BATCH) -> int:
    """Delete claims after their `keep_until`, `batch` claims in each commit. Return how many were deleted.

    Claims whose lease has not ended, and claims that another process is deleting, are skipped.
    """
    alias, purged = using or conf.current_settings().database, 0
    found = batch
    while found == batch:
        found = table.delete_old_claims(alias, limit=batch)
        purged += found
    return purged


def purgeable(*, using: str | None = None) -> int:
    """Return how many claims `purge` would delete now."""
    return table.count_old_claims(using or conf.current_settings().database)
