"""Delete expired claims."""

from __future__ import annotations

from reprocessing.idempotency import conf, table

BATCH = 1_000


def purge(*, using: str | None = None, batch: int = BATCH) -> int:
    """Delete expired claims, `batch` claims in each transaction; return how many were deleted.

    A claim expires at its `keep_until`. Claims whose lease has not ended, and claims that another process is deleting,
    are skipped. `using`: the database's alias; None: the alias in the settings.
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
