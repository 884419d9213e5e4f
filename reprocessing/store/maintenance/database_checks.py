"""PostgreSQL itself: its version, its clocks, and whether its tables are those of this version."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader

from reprocessing.models.dlq import DeadLetterQueue
from reprocessing.store import rows

_SERVER = """
SELECT current_setting('server_version_num')::int AS version, clock_timestamp() AS now, redrive_now() AS ours
"""


@dataclass(frozen=True, slots=True)
class Server:
    """What it says of itself. `version`: as 150004; `now`: its clock; `ours`: what leases and deadlines go by."""

    version: int
    now: datetime
    ours: datetime


def server() -> Server:
    """Ask it.

    Raises:
        django.db.Error: it is out of reach, or has no tables of ours.
    """
    return rows.fetch(Server, _SERVER, {})[0]


def pending() -> list[str]:
    """The migrations that are not applied, as APP.NAME."""
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    return [f"{one.app_label}.{one.name}" for one, _ in plan]


def halfway() -> list[str]:
    """What an app lacks, as APP.NAME, of migrations whose files are gone, where one that stands for some has a part.

    Django passes over that one then, and over what is missing, and says that all is applied.
    """
    loader = MigrationLoader(connection)
    gone = {one: set(one.replaces) - loader.disk_migrations.keys() for one in loader.disk_migrations.values()}
    lacking = {one: keys - loader.applied_migrations.keys() for one, keys in gone.items()}
    apps = {one.app_label for one, keys in lacking.items() if 0 < len(keys) < len(gone[one])}
    return sorted(f"{app}.{name}" for one, keys in lacking.items() if one.app_label in apps for app, name in keys)


def has_dlqs() -> bool:
    """Whether any dlq is watched."""
    return DeadLetterQueue.objects.exists()


@contextmanager
def patience(seconds: float) -> Iterator[None]:
    """No statement in here takes longer; one that does is an error.

    Raises:
        django.db.Error: it is out of reach.
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
