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
        version: such as 150004.
        now: the time of PostgreSQL's clock.
        ours: the time that leases and deadlines use (`redrive_now`).
    """

    version: int
    now: datetime
    ours: datetime


def read_server() -> Server:
    """Return the server's version and clocks.

    Raises:
        django.db.Error: the server is out of reach, or has no tables of this service.
    """
    return rows.fetch(Server, _SERVER, {})[0]


def pending_migrations() -> list[str]:
    """Return the migrations that are not applied, as APP.NAME."""
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    return [f"{migration.app_label}.{migration.name}" for migration, _ in plan]


def has_dlqs() -> bool:
    """Return whether any DLQ is watched."""
    return DeadLetterQueue.objects.exists()


@contextmanager
def statement_timeout(seconds: float) -> Iterator[None]:
    """Set a statement timeout within the block.

    Raises:
        django.db.Error: the server is out of reach.
    """
    _have_patience(f"{seconds * 1000:.0f}")
    try:
        yield
    finally:
        if connection.connection is not None and not connection.connection.broken:
            _have_patience("0")


def _have_patience(milliseconds: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('statement_timeout', %s, false)", [milliseconds])
