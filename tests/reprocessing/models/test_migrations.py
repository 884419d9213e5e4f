"""A database that an earlier state of this service made is recognised; one that stopped halfway is not called whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import pytest
from django.core.checks import run_checks
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.db import connection, migrations
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from reprocessing.domain.maintenance.findings import FindingSeverity
from reprocessing.pipeline.maintenance.doctor import database
from reprocessing.store.maintenance import database_checks

pytestmark = pytest.mark.django_db

OURS, LAST = "reprocessing", "0021_set_to_what_there_is"
CURE = (
    "Migrate it with the version of this service that has these as files, and then with this one. "
    "One that is new, and holds nothing, is to be dropped and made anew."
)


@pytest.fixture
def recorder() -> MigrationRecorder:
    """Of a database that knows those alone that were replaced."""
    recorder = MigrationRecorder(connection)
    ours = [migration for (app, _), migration in MigrationLoader(connection).disk_migrations.items() if app == OURS]
    for migration in ours:
        if migration.replaces:
            recorder.record_unapplied(OURS, migration.name)
    replaced = [name for migration in ours for _, name in migration.replaces]
    later = {migration.name for migration in ours if not migration.replaces}
    applied = {name for app, name in recorder.applied_migrations() if app == OURS}
    assert (len(replaced), set(replaced)) == (21, applied - later)
    return recorder


def forget_from(recorder: MigrationRecorder, first: str) -> None:
    for app, name in recorder.applied_migrations():
        if app == OURS and name >= first:
            recorder.record_unapplied(app, name)


def test_a_database_with_every_replaced_migration_lacks_nothing(recorder: MigrationRecorder) -> None:
    assert (database_checks.missing_replaced_migrations(), database_checks.pending_migrations()) == ([], [])


@pytest.mark.parametrize("options", [{}, {"check_unapplied": True}, {"plan": True}])
def test_a_database_without_some_replaced_migrations_is_not_migrated(
    recorder: MigrationRecorder, options: dict[str, bool]
) -> None:
    recorder.record_unapplied(OURS, LAST)
    with pytest.raises(SystemCheckError) as refused:
        call_command("migrate", verbosity=0, skip_checks=False, **options)
    assert (
        f"?: (redrive.E001) It stopped halfway through migrations that are fewer by now: it lacks {OURS}.{LAST}. "
        "Django would pass over these, and call it whole.\n"
        f"\tHINT: {CURE}\n"
    ) in str(refused.value)


def test_the_doctor_does_not_advise_a_migrate_that_is_refused(recorder: MigrationRecorder) -> None:
    recorder.record_unapplied(OURS, LAST)
    assert [(remark.grade, remark.cure) for remark in database.remarks()] == [(FindingSeverity.ERROR, CURE)]


def test_missing_migrations_are_counted_and_the_first_are_named(recorder: MigrationRecorder) -> None:
    forget_from(recorder, "0003")
    found = database.unfinished_migrations()
    assert found is not None
    lacks = database_checks.missing_replaced_migrations()
    assert [name.split(".")[1][:4] for name in lacks] == [f"{n:04}" for n in range(3, 22)]
    assert found.what.endswith(f"it lacks {', '.join(lacks[:5])} and 14 more.")


def test_a_database_with_only_the_first_migration_is_migrated_further(recorder: MigrationRecorder) -> None:
    first, *later = sorted(name for app, name in MigrationLoader(connection).disk_migrations if app == OURS)
    forget_from(recorder, "0001")
    for key in MigrationLoader(connection).disk_migrations[OURS, first].replaces:
        recorder.record_applied(*key)
    recorder.record_applied(OURS, first)
    lacks = [f"{OURS}.{name}" for name in later]
    assert (database_checks.missing_replaced_migrations(), database_checks.pending_migrations()) == ([], lacks)
    assert [(remark.what, remark.cure) for remark in database.remarks()] == [
        (f"Migrations are not applied: {', '.join(lacks[:5])} and {len(lacks) - 5} more.", "manage.py migrate")
    ]


def test_an_empty_database_is_not_halfway(recorder: MigrationRecorder) -> None:
    forget_from(recorder, "0001")
    assert database_checks.missing_replaced_migrations() == []


class _Both(migrations.Migration):
    replaces: ClassVar[list[tuple[str, str]]] = [("theirs", "0001_a"), ("theirs", "0002_b")]


def test_an_app_that_still_has_the_files_is_left_to_django(monkeypatch: pytest.MonkeyPatch) -> None:
    load: Callable[[MigrationLoader], Any] = MigrationLoader.load_disk

    def with_another(loader: MigrationLoader) -> None:
        load(loader)
        parts = [migrations.Migration(name, "theirs") for name in ("0001_a", "0002_b")]
        for migration in (_Both("0001_both", "theirs"), *parts):
            loader.disk_migrations["theirs", migration.name] = migration

    monkeypatch.setattr(MigrationLoader, "load_disk", with_another)
    MigrationRecorder(connection).record_applied("theirs", "0001_a")
    assert database_checks.missing_replaced_migrations() == []


def test_checks_without_databases_do_not_query(recorder: MigrationRecorder) -> None:
    recorder.record_unapplied(OURS, LAST)
    assert [message.id for message in run_checks(databases=["default"]) if message.id == "redrive.E001"] == [
        "redrive.E001"
    ]
    assert [message for message in run_checks() if message.id == "redrive.E001"] == []


def test_a_migration_and_its_record_share_one_transaction() -> None:
    loader = MigrationLoader(connection)
    for key in sorted(key for key in loader.disk_migrations if key[0] == OURS):
        with connection.schema_editor(collect_sql=True, atomic=False) as editor:
            loader.disk_migrations[key].apply(loader.project_state(key, at_end=False), editor, collect_sql=True)
            assert (key, editor.deferred_sql) == (key, [])  # else Django records it after the commit
