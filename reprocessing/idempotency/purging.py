"""Delete expired claims."""

from __future__ import annotations

from reprocessing.idempotency import conf, table

BATCH = 1_000


def purge(*, using: str | None = None, batch: int = BATCH) -> int:
    """Delete expired claims, `batch` claims in each commit. Return how many were deleted.

    A claim expires at its `keep_until`. Claims whose lease has not ended are skipped, as are claims that another
    process is deleting.
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
