"""A backup of the rows of this app, taken and restored in the test's own database."""

from __future__ import annotations

from django.apps import apps
from django.db import connection

_SCHEMA = "a_backup"


def _tables() -> list[str]:
    return [model._meta.db_table for model in apps.get_app_config("reprocessing").get_models(include_auto_created=True)
            if not model._meta.proxy]  # fmt: skip


def take() -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"DROP SCHEMA IF EXISTS {_SCHEMA} CASCADE; CREATE SCHEMA {_SCHEMA}")
        for table in _tables():
            cursor.execute(f'CREATE TABLE {_SCHEMA}."{table}" AS TABLE "{table}"')


def restore() -> None:
    moves = "".join(
        f'DELETE FROM "{table}"; INSERT INTO "{table}" SELECT * FROM {_SCHEMA}."{table}";' for table in _tables()
    )
    with connection.cursor() as cursor:  # no trigger and no foreign key is asked, as by pg_restore
        cursor.execute(f"BEGIN; SET LOCAL session_replication_role = replica; {moves} COMMIT")
        cursor.execute(f"DROP SCHEMA {_SCHEMA} CASCADE")
