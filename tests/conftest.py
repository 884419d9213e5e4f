"""What holds for every test: no example has a deadline, and only those tables are emptied that have rows."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.backends.utils import CursorWrapper
from django.test import TransactionTestCase
from hypothesis import HealthCheck, settings

# A slow machine is no failure.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

#: How many rows the end of a migration leaves in each table: of content types and permissions, that is.
_kept: dict[str, int] = {}

#: A table of more bytes is made anew: some hundred letters.
_LARGE = 1_000_000


def pytest_collection_finish() -> None:
    """Thousands of tests are objects that last; to look for garbage among them again and again takes a while."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _emptied_and_not_truncated() -> Iterator[None]:
    """A TRUNCATE makes files anew for forty tables and their indexes; most tests have written a dozen rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransactionTestCase, "_fixture_teardown", lambda _: empty())
        patch.setattr(TransactionTestCase, "_should_reload_connections", lambda _: False)  # no cursor of ours is dear
        yield


def empty() -> None:
    """Leave the database as Django's flush does."""
    found = _rows() if _kept else None
    if found is None or any(found.get(table) != rows for table, rows in _kept.items()):
        call_command("flush", verbosity=0, interactive=False, reset_sequences=False)
        _kept.update(_rows())
        return
    filled = [table for table in found if table not in _kept]
    if filled:
        rows = "".join(f'DELETE FROM "{table}";' for table in filled)
        with connection.cursor() as cursor:  # no trigger and no foreign key is asked
            cursor.execute(f"BEGIN; SET LOCAL session_replication_role = replica; {rows} COMMIT")
            _leave_no_dead_rows(cursor, filled)


def _leave_no_dead_rows(cursor: CursorWrapper, tables: list[str]) -> None:
    """A test with thousands of letters must not make the next one read their dead rows, or plan for them."""
    cursor.execute(
        "SELECT relname FROM pg_class WHERE oid = ANY (%s::regclass[]) AND pg_relation_size(oid) > %s",
        [tables, _LARGE],
    )
    if large := [table for (table,) in cursor.fetchall()]:
        listed = ", ".join(f'"{table}"' for table in large)
        cursor.execute(f"TRUNCATE {listed} CASCADE")  # all that refers to them is empty
        cursor.execute("DELETE FROM pg_statistic WHERE starelid = ANY (%s::regclass[])", [large])


def _rows() -> dict[str, int]:
    """The tables that have rows: how many, of those that are kept, and else 1."""
    tables = connection.introspection.django_table_names(only_existing=True, include_views=False)
    counted = "SELECT '{0}', count(*) FROM \"{0}\" HAVING count(*) > 0"
    looked = "SELECT '{0}', 1 WHERE EXISTS (SELECT FROM \"{0}\")"
    asked = [(counted if table in _kept or not _kept else looked).format(table) for table in tables]
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(asked))
        return dict(cursor.fetchall())
