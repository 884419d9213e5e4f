"""What holds for every test: no example has a deadline, and only those tables are emptied that have rows."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.management import call_command
from django.db import DEFAULT_DB_ALIAS, connection, connections
from django.test import TransactionTestCase
from hypothesis import HealthCheck, settings
from psycopg.sql import SQL, Identifier
from pytest_django import DjangoDbBlocker

# A slow machine is no failure.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

#: How many rows the end of a migration leaves in each table: of content types and permissions, that is.
_kept: dict[str, int] = {}

#: A table of more bytes is made anew: some hundred letters.
_LARGE = 1_000_000


#: Folders whose tests are slow: threads against each other, worker processes, whole stories, servers of every kind; and
#: folders in which a test takes more than three times as long as others, on average.
_SLOW_FOLDERS = tuple(
    Path(__file__).parent / name
    for name in (
        "race", "stories", "broker/real_workers", "reprocessing/pipeline/targets", "reprocessing/commands/maintenance",
        "reprocessing/admin/editing", "reprocessing/admin/targets", "reprocessing/commands/configuration",
        "reprocessing/pipeline/aws", "reprocessing/pipeline/maintenance", "reprocessing/pipeline/routing",
    )
)  # fmt: skip


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the slow folders, and start slow tests first: beside the others they cost little, after them a minute."""
    for item in items:
        if any(item.path.is_relative_to(folder) for folder in _SLOW_FOLDERS):
            item.add_marker(pytest.mark.soak)
    items.sort(key=lambda item: item.get_closest_marker("soak") is None)


def pytest_collection_finish() -> None:
    """Exempt the tests, thousands of objects that last, from garbage collections, and collect seldom.

    A request through Django creates ten thousand objects. With Python's thresholds, collections took a fifth of the
    tests' processor time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 1_000)


@pytest.fixture(scope="session", autouse=True)
def _emptied_and_not_truncated() -> Iterator[None]:
    """A TRUNCATE makes files anew for forty tables and their indexes; most tests have written a dozen rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransactionTestCase, "_fixture_teardown", lambda _: empty())
        patch.setattr(TransactionTestCase, "_should_reload_connections", lambda _: False)  # no cursor of ours is dear
        yield


@pytest.fixture(scope="session")
def django_db_modify_db_settings(
    django_db_modify_db_settings_parallel_suffix: None, django_db_blocker: DjangoDbBlocker
) -> None:
    """Processes beside each other copy one migrated database: to migrate takes each of them seven seconds."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return
    name = connection.settings_dict["NAME"]
    with django_db_blocker.unblock(), connection._nodb_cursor() as cursor:  # of no database of ours
        cursor.execute("SELECT pg_advisory_lock(1)")  # until this connection ends
        cursor.execute("SELECT FROM pg_database WHERE datname = %s AND datistemplate", [name])
        if not cursor.rowcount:
            call_command("migrate", verbosity=0)
            connection.close()
            cursor.execute(SQL("ALTER DATABASE {} IS_TEMPLATE true").format(Identifier(name)).as_string())
    connection.settings_dict["TEST"].update(TEMPLATE=name, MIGRATE=False)


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None) -> Iterator[None]:
    yield
    if _emptier.cache_info().currsize:
        _emptier().close()


@pytest.fixture(scope="session", autouse=True)
def _planned_once() -> None:
    """Postgres spends two thirds of a test's statements on plans for tables of a dozen rows: it may keep them."""
    connections.settings[DEFAULT_DB_ALIAS]["OPTIONS"]["prepare_threshold"] = 1


def empty() -> None:
    """Leave the database as Django's flush does."""
    found = _rows() if _kept else None
    if found is None or any(found.get(table) != rows for table, rows in _kept.items()):
        call_command("flush", verbosity=0, interactive=False, reset_sequences=False)
        _kept.update(_rows())
        return
    filled = [table for table in found if table not in _kept]
    if filled:
        with _emptier().pipeline():
            for table in filled:
                _emptier().execute(SQL("DELETE FROM {}").format(Identifier(table)))
        _leave_no_dead_rows(filled)


@cache
def _emptier() -> psycopg.Connection[Any]:
    """A connection beside Django's, whose plans would be forgotten with each change of its role.

    No trigger and no foreign key is asked.
    """
    told = {**connection.get_connection_params(), "prepare_threshold": 1}
    del told["cursor_factory"], told["context"]  # Django's, which binds parameters itself
    made = psycopg.connect(**told, autocommit=True)
    made.execute("SET session_replication_role = replica")
    return made


def _leave_no_dead_rows(tables: list[str]) -> None:
    """A test with thousands of letters must not make the next one read their dead rows, or plan for them."""
    found = _emptier().execute(
        "SELECT relname FROM pg_class WHERE oid = ANY (%s::regclass[]) AND pg_relation_size(oid) > %s", [tables, _LARGE]
    )
    if large := [table for (table,) in found]:
        listed = SQL(", ").join(map(Identifier, large))
        _emptier().execute(SQL("TRUNCATE {} CASCADE").format(listed))  # all that refers to them is empty
        _emptier().execute("DELETE FROM pg_statistic WHERE starelid = ANY (%s::regclass[])", [large])


def _rows() -> dict[str, int]:
    """The tables that have rows: how many, of those that are kept, and else 1."""
    counted = "SELECT '{0}', count(*) FROM \"{0}\" HAVING count(*) > 0"
    looked = "SELECT '{0}', 1 WHERE EXISTS (SELECT FROM \"{0}\")"
    asked = [(counted if table in _kept or not _kept else looked).format(table) for table in _tables()]
    return dict(_emptier().execute(" UNION ALL ".join(asked)).fetchall())


@cache
def _tables() -> list[str]:
    return connection.introspection.django_table_names(only_existing=True, include_views=False)
