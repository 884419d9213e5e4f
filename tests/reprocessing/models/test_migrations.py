"""A database that an earlier state of this service made is recognised, and nothing is done to it twice."""

from __future__ import annotations

import pytest
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from reprocessing.models import server

pytestmark = pytest.mark.django_db

OURS = "reprocessing"


def test_a_database_that_had_every_migration_that_was_replaced_has_those_that_replace_them() -> None:
    migrations = [one for (app, _), one in MigrationLoader(connection).disk_migrations.items() if app == OURS]
    replaced = [name for one in migrations for _, name in one.replaces]
    recorder = MigrationRecorder(connection)
    for one in migrations:
        recorder.record_unapplied(OURS, one.name)
    for name in replaced:
        recorder.record_applied(OURS, name)

    assert (len(replaced), len(set(replaced)), server.pending()) == (21, 21, [])
