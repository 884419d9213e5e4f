"""A database that an earlier state of this service made is recognised; one that stopped halfway is not called whole."""

from __future__ import annotations

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from reprocessing.models import server

pytestmark = pytest.mark.django_db

OURS, LAST = "reprocessing", "0021_set_to_what_there_is"


@pytest.fixture
def recorder() -> MigrationRecorder:
    """Of a database that knows those alone that were replaced."""
    recorder = MigrationRecorder(connection)
    migrations = [one for (app, _), one in MigrationLoader(connection).disk_migrations.items() if app == OURS]
    for one in migrations:
        recorder.record_unapplied(OURS, one.name)
    replaced = [name for one in migrations for _, name in one.replaces]
    assert (len(replaced), set(replaced)) == (21, {name for app, name in recorder.applied_migrations() if app == OURS})
    return recorder


def test_a_database_that_has_every_migration_that_was_replaced_lacks_nothing(recorder: MigrationRecorder) -> None:
    assert server.pending() == []


def test_one_that_lacks_some_of_them_is_not_migrated_and_said_to_lack_them(recorder: MigrationRecorder) -> None:
    recorder.record_unapplied(OURS, LAST)
    with pytest.raises(CommandError) as refused:
        call_command("migrate", verbosity=0)
    assert str(refused.value) == (
        f"This database stopped halfway through migrations that are one by now: it lacks {OURS}.{LAST}. "
        "Migrate it with the version of this service that has them as files, and then with this one."
    )
    assert server.pending() == [f"{OURS}.{LAST}"]


def test_an_empty_database_is_not_halfway(recorder: MigrationRecorder) -> None:
    for app, name in recorder.applied_migrations():
        if app == OURS:
            recorder.record_unapplied(app, name)
    assert server.halfway() == []
