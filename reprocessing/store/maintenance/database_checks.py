"""Read PostgreSQL's version and clocks, and check whether its schema fits this version of the service."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from reprocessing.models.dlq import DeadLetterQueue
from reprocessing.store import rows

_SERVER = """
SELECT current_setting('server_version_num')::int AS version, clock_timestamp() AS now, redrive_now() AS ours
"""


@dataclass(frozen=True, slots=True)
class Server:
    """The PostgreSQL server.

    Attributes:
        version: PostgreSQL's `server_version_num`, such as 150004 for version 15.4.
        now: the time of PostgreSQL's clock.
        ours: the time by which leases and deadlines are set (PostgreSQL's function `redrive_now`).
    """

    version: int
    now: datetime
    ours: datetime


def read_server() -> Server:
    """Return PostgreSQL's version, and the times of its clock and of `redrive_now`.

    Raises:
        django.db.Error: PostgreSQL cannot be reached, or has no tables of this service.
    """
    return rows.fetch(Server, _SERVER, {})[0]


def pending_migrations() -> list[str]:
    """Return the migrations that are not applied, as APP.NAME."""
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    return [f"{migration.app_label}.{migration.name}" for migration, _ in plan]


def has_dlqs() -> bool:
    """Return whether any DLQ is registered."""
    return DeadLetterQueue.objects.exists()


@contextmanager
def statement_timeout(seconds: float) -> Iterator[None]:
    """Set PostgreSQL's statement timeout to `seconds` within the block.

    Raises:
        django.db.Error: PostgreSQL cannot be reached.
    """
    _set_timeout(f"{seconds * 1000:.0f}")
    try:
        yield
    finally:
        if connection.connection is not None and not connection.connection.broken:
            _set_timeout("0")


def _set_timeout(milliseconds: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('statement_timeout', %s, false)", [milliseconds])
