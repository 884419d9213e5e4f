from __future__ import annotations

import pytest
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from reprocessing.pipeline.maintenance.doctor import database
from reprocessing.store.maintenance import database_checks

pytestmark = pytest.mark.django_db

OURS = "reprocessing"


def test_a_migrated_database_lacks_nothing() -> None:
    assert database_checks.pending_migrations() == []


def test_the_doctor_names_the_migrations_that_are_not_applied() -> None:
    recorder = MigrationRecorder(connection)
    for name in ("0001_tables", "0002_functions_and_triggers"):
        recorder.record_unapplied(OURS, name)
    assert [(finding.what, finding.cure) for finding in database.findings()] == [
        (f"Migrations are not applied: {OURS}.0001_tables, {OURS}.0002_functions_and_triggers.", "manage.py migrate")
    ]


@pytest.mark.soak
def test_a_migration_and_its_record_share_one_transaction() -> None:
    loader = MigrationLoader(connection)
    for key in sorted(key for key in loader.disk_migrations if key[0] == OURS):
        with connection.schema_editor(collect_sql=True, atomic=False) as editor:
            loader.disk_migrations[key].apply(loader.project_state(key, at_end=False), editor, collect_sql=True)
            assert (key, editor.deferred_sql) == (key, [])  # else Django records it after the commit
