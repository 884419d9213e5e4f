"""Sets of rows in and out of Postgres: one statement for many letters, parameters in binary.

The set-based statements of this package go past the ORM, because what decides is in them: which row is locked first,
what is compared before it is set. They run on Django's own connection, so that its transactions are theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, LiteralString, TypeVar

import psycopg
from django.db import OperationalError, connection, transaction
from psycopg.rows import BaseRowFactory, class_row, tuple_row

Shape = TypeVar("Shape")
Done = TypeVar("Done")

#: How often what Postgres gave up for another's sake is done again: two who wait for each other are soon apart.
AGAIN = 8


def fetch(shape: type[Shape], statement: LiteralString, parameters: Mapping[str, Any]) -> list[Shape]:
    """The statement's rows, each as one `shape`, whose fields carry the columns' names.

    Outside a transaction a deadlock's victim is run again.

    Raises:
        django.db.Error: as the ORM would.
    """
    return _all(class_row(shape), statement, parameters)


def column(kind: type[Shape], statement: LiteralString, parameters: Mapping[str, Any]) -> list[Shape]:
    """The rows of a statement that answers with one column, each as its value.

    Raises:
        TypeError: a value is of another kind, which is a mistake of whoever wrote the statement.
        ValueError: there is another column.
        django.db.Error: as the ORM would.
    """
    found = [value for (value,) in _all(tuple_row, statement, parameters)]
    for value in found:
        if type(value) is not kind:
            raise TypeError(f"Postgres answered with {type(value).__name__} where {kind.__name__} was expected.")
    return found


def value(kind: type[Shape], statement: LiteralString, parameters: Mapping[str, Any]) -> Shape:
    """The one value of a statement that always answers with one row of one column.

    Raises:
        TypeError: it is of another kind.
        ValueError: there was no row, or more than one, or another column.
        django.db.Error: as the ORM would.
    """
    (only,) = column(kind, statement, parameters)
    return only


def execute(statement: LiteralString, parameters: Mapping[str, Any]) -> int:
    """Run the statement; how many rows it touched, or answered with.

    Outside a transaction a deadlock's victim is run again.

    Raises:
        django.db.Error: as the ORM would.
    """

    def run() -> int:
        with connection.wrap_database_errors, psycopg.Cursor(_raw()) as cursor:
            _execute(cursor, statement, parameters)
            return cursor.rowcount

    return _again(run)


def whole(work: Callable[[], Done]) -> Done:
    """Do work in one transaction, and again from its beginning when it was a deadlock's victim: nothing of it is done.

    Raises:
        django.db.Error: as the ORM would.
    """

    def run() -> Done:
        with transaction.atomic():
            return work()

    return _again(run)


def _all(shape: BaseRowFactory[Shape], statement: LiteralString, parameters: Mapping[str, Any]) -> list[Shape]:
    def run() -> list[Shape]:
        with connection.wrap_database_errors, psycopg.Cursor(_raw(), row_factory=shape) as cursor:
            _execute(cursor, statement, parameters)
            return cursor.fetchall()

    return _again(run)


def _again(run: Callable[[], Done]) -> Done:
    """A connection that was lost with an earlier statement is another by now; with this one, that is the caller's."""
    if connection.connection is not None and connection.connection.closed and not connection.in_atomic_block:
        connection.close()
    connection.ensure_connection()
    for _ in range(0 if connection.in_atomic_block else AGAIN):
        try:
            return run()
        except OperationalError as error:
            if not isinstance(error.__cause__, psycopg.errors.DeadlockDetected):
                raise
    return run()


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
