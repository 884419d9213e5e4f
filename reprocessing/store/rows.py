"""Run SQL statements, and return their rows as typed values.

The statements do not use Django's ORM, because they need a certain order of locks, and compare-and-set. They use
Django's connection, so Django's transactions apply. Parameters are sent to PostgreSQL in binary form.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final, LiteralString, TypeVar

import psycopg
from django.db import DatabaseError, InterfaceError, InternalError, OperationalError, connection, transaction
from psycopg.rows import BaseRowFactory, class_row, tuple_row

Shape = TypeVar("Shape")
Done = TypeVar("Done")

#: Errors that mean that PostgreSQL cannot be used now. A transaction was committed fully or not at all.
OUTAGES: Final = (OperationalError, InterfaceError, InternalError)
#: Retries after a deadlock. A deadlock between two transactions seldom repeats.
DEADLOCK_RETRIES = 8


def fetch(shape: type[Shape], statement: LiteralString, parameters: Mapping[str, Any]) -> list[Shape]:
    """Return the statement's rows, each as an object of the class `shape`; its fields are the columns.

    Errors are Django's (`django.db.Error`). If no transaction is open, the statement is run again after a deadlock.
    """
    return _all(class_row(shape), statement, parameters)


def first(shape: type[Shape], statement: LiteralString, parameters: Mapping[str, Any]) -> Shape | None:
    """Return the first row that `fetch` would return; None if there are no rows."""
    return next(iter(fetch(shape, statement, parameters)), None)


def column(kind: type[Shape], statement: LiteralString, parameters: Mapping[str, Any]) -> list[Shape]:
    """Run a statement that returns one column; return its values. Raises TypeError if one is not of type `kind`."""
    found = [value for (value,) in _all(tuple_row, statement, parameters)]
    for value in found:
        if type(value) is not kind:
            raise TypeError(f"Postgres answered with {type(value).__name__} where {kind.__name__} was expected.")
    return found


def value(kind: type[Shape], statement: LiteralString, parameters: Mapping[str, Any]) -> Shape:
    """Run a statement that returns one value, and return the value. Raises ValueError if it returns more, or none."""
    (only,) = column(kind, statement, parameters)
    return only


def arrays(shape: type[Any], items: Iterable[Any]) -> dict[str, list[Any]]:
    """Return the items as array parameters for SQL's `unnest`: one list of values for each field of `shape`.

    `shape` is the dataclass of the items.
    """
    some = list(items)
    return {field.name: [getattr(item, field.name) for item in some] for field in dataclasses.fields(shape)}


def execute(statement: LiteralString, parameters: Mapping[str, Any]) -> int:
    """Run the statement; return how many rows it changed or returned.

    Errors are Django's (`django.db.Error`). If no transaction is open, the statement is run again after a deadlock.
    """
    return _run(tuple_row, statement, parameters, lambda cursor: cursor.rowcount)


def in_transaction(work: Callable[[], Done]) -> Done:
    """Run `work` in one transaction; run all of it again after a deadlock, unless an outer transaction is open.

    Return what `work` returns. Errors are Django's (`django.db.Error`).
    """

    def run() -> Done:
        with transaction.atomic():
            return work()

    return _again(run)


@contextmanager
def planned_once() -> Iterator[None]:
    """Let PostgreSQL plan each prepared statement of this block only once, for all parameters (docs/adr/0058).

    Call it only outside of transactions, for statements that find their rows by ids in arrays. If statements are not
    prepared, because a pooler shares the connection between clients, this changes nothing.
    """
    connection.ensure_connection()
    if _raw().prepare_threshold is None:
        yield
        return
    execute("SELECT set_config('plan_cache_mode', 'force_generic_plan', false)", {})
    try:
        yield
    finally:
        with suppress(DatabaseError):  # the connection is lost, and its settings with it
            execute("SELECT set_config('plan_cache_mode', 'auto', false)", {})


def _all(shape: BaseRowFactory[Shape], statement: LiteralString, parameters: Mapping[str, Any]) -> list[Shape]:
    return _run(shape, statement, parameters, lambda cursor: cursor.fetchall())


def _run(
    shape: BaseRowFactory[Shape], statement: LiteralString, parameters: Mapping[str, Any],
    answer: Callable[[psycopg.Cursor[Shape]], Done],
) -> Done:  # fmt: skip
    def run() -> Done:
        with connection.wrap_database_errors, psycopg.Cursor(_raw(), row_factory=shape) as cursor:
            _execute(cursor, statement, parameters)
            return answer(cursor)

    return _again(run)


def _again(run: Callable[[], Done]) -> Done:
    """Call `run` and return its result. Outside a transaction, call it again after a deadlock, up to 8 times.

    If an earlier statement lost the connection to PostgreSQL, connect again first, unless a transaction is open.
    """
    if connection.connection is not None and connection.connection.closed and not connection.in_atomic_block:
        connection.close()
    connection.ensure_connection()
    for _ in range(0 if connection.in_atomic_block else DEADLOCK_RETRIES):
        try:
            return run()
        except OperationalError as error:
            if not isinstance(error.__cause__, psycopg.errors.DeadlockDetected):
                raise
    return run()


def _execute(cursor: psycopg.Cursor[Any], statement: LiteralString, parameters: Mapping[str, Any]) -> None:
    """Run the statement. Errors name the constraint but not the row: a row may contain message data."""
    try:
        cursor.execute(statement, parameters, binary=True)
    except psycopg.Error as error:
        if error.diag.message_detail is None:
            raise
        raise type(error)(f"{error.diag.message_primary} ({error.diag.constraint_name})") from None


def _raw() -> psycopg.Connection[Any]:
    raw = connection.connection
    if not isinstance(raw, psycopg.Connection):  # to mypy, it may also be None
        raise TypeError(f"PostgreSQL through psycopg 3 is needed, not {type(raw).__name__}")
    return raw
