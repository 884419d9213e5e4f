"""Find database objects (tables, indexes, triggers ...) that migrations create, but that are missing or disabled."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, LiteralString

from django.apps import apps
from django.db import connection, models
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations import RunSQL

from reprocessing.store import rows

_APP: Final = "reprocessing"
#: Objects, other than tables, that migrations create by SQL.
_MADE: Final = re.compile(r"CREATE (?:OR REPLACE )?(FUNCTION|SEQUENCE|TRIGGER) (\w+)")

_PRESENT: Final[LiteralString] = """
SELECT 'table ' || c.relname FROM pg_class c WHERE c.relkind IN ('r', 'p') AND pg_table_is_visible(c.oid)
 UNION ALL
SELECT 'sequence ' || c.relname FROM pg_class c WHERE c.relkind = 'S' AND pg_table_is_visible(c.oid)
 UNION ALL
SELECT 'index ' || c.relname FROM pg_class c JOIN pg_index i ON i.indexrelid = c.oid
 WHERE i.indisvalid AND pg_table_is_visible(c.oid)
 UNION ALL
SELECT 'column ' || c.relname || '.' || a.attname
  FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
 WHERE c.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped AND pg_table_is_visible(c.oid)
 UNION ALL
SELECT 'constraint ' || k.conname FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid
 WHERE k.convalidated AND pg_table_is_visible(c.oid)
 UNION ALL
SELECT 'trigger ' || t.tgname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
 WHERE NOT t.tgisinternal AND t.tgenabled <> 'D' AND pg_table_is_visible(c.oid)
 UNION ALL
SELECT 'function ' || p.proname FROM pg_proc p WHERE pg_function_is_visible(p.oid)
"""


def missing_objects() -> list[str]:
    """Return the missing tables, columns, constraints, indexes, sequences, triggers and functions of this version.

    An invalid constraint or index and a disabled trigger count as missing. The parts of a missing table are not listed.

    Raises:
        django.db.Error: the database does not answer.
    """
    present = set(rows.column(str, _PRESENT, {}))
    return sorted([*_missing_of_models(present), *(name for name in _made_by_sql() if name not in present)])


def _missing_of_models(present: set[str]) -> Iterator[str]:
    for model in apps.get_app_config(_APP).get_models(include_auto_created=True):
        table = model._meta.db_table  # noqa: SLF001  Django's documented name
        if f"table {table}" not in present:
            yield f"table {table}"
        else:
            yield from (part for part in _parts(model, table) if not present.intersection(part.split(" or ")))


def _parts(model: type[models.Model], table: str) -> Iterator[str]:
    """Yield the columns, constraints and indexes of a table, as `missing_objects` names them.

    A unique constraint with a condition may be an index in PostgreSQL.
    """
    meta = model._meta  # noqa: SLF001  Django's documented name
    yield from (f"column {table}.{field.column}" for field in meta.local_concrete_fields)
    yield from (f"constraint {constraint.name} or index {constraint.name}" for constraint in meta.constraints)
    yield from (f"index {index.name}" for index in meta.indexes)


def _made_by_sql() -> set[str]:
    found = MigrationLoader(connection).disk_migrations
    texts = [
        str(operation.sql)
        for (app, _), migration in found.items()
        if app == _APP
        for operation in migration.operations
        if isinstance(operation, RunSQL)
    ]
    return {f"{kind.lower()} {name}" for text in texts for kind, name in _MADE.findall(text)}
