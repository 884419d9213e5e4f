"""Sets of rows in and out of Postgres: one statement for many letters, parameters in binary.

The set-based statements of this package go past the ORM, because what decides is in them: which row is locked first,
what is compared before it is set. They run on Django's own connection, so that its transactions are theirs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, LiteralString, TypeVar

import psycopg
from django.db import connection
from psycopg.rows import class_row

Shape = TypeVar("Shape")


def fetch(shape: type[Shape], statement: LiteralString, parameters: Mapping[str, Any]) -> list[Shape]:
    """The statement's rows, each as one `shape`, whose fields carry the columns' names.

    Raises:
        django.db.Error: as the ORM would.
    """
    connection.ensure_connection()
    with connection.wrap_database_errors, psycopg.Cursor(_raw(), row_factory=class_row(shape)) as cursor:
        _execute(cursor, statement, parameters)
        return cursor.fetchall()


def execute(statement: LiteralString, parameters: Mapping[str, Any]) -> int:
    """Run the statement; how many rows it touched.

    Raises:
        django.db.Error: as the ORM would.
    """
    connection.ensure_connection()
    with connection.wrap_database_errors, psycopg.Cursor(_raw()) as cursor:
        _execute(cursor, statement, parameters)
        return cursor.rowcount


def _execute(cursor: psycopg.Cursor[Any], statement: LiteralString, parameters: Mapping[str, Any]) -> None:
    """Run it; an error tells what was violated, not the row that did: a row may hold a customer's letter."""
    try:
        cursor.execute(statement, parameters, binary=True)
    except psycopg.Error as error:
        if error.diag.message_detail is None:
            raise
        raise type(error)(f"{error.diag.message_primary} ({error.diag.constraint_name})") from None


def _raw() -> psycopg.Connection[Any]:
    raw = connection.connection
    if not isinstance(raw, psycopg.Connection):  # Django's wrapper holds one after ensure_connection()
        raise TypeError(f"PostgreSQL through psycopg 3 is needed, not {type(raw).__name__}")
    return raw
