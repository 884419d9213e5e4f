"""A Celery task uses the connection to PostgreSQL of the task before it, with its prepared statements."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from celery.fixups.django import DjangoWorkerFixup  # type: ignore[attr-defined]  # the stubs leave it out
from django.db import connection

from redrive_service.celery import app, close_old_connection

pytestmark = pytest.mark.django_db(transaction=True)


def _server_process() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return int(cursor.fetchone()[0])


def _nothing() -> None:
    pass


def _outlive() -> None:
    connection.close_at = time.monotonic() - 1


def _break() -> None:
    connection.connection.close()


@pytest.mark.parametrize(
    ("happens", "kept"),
    [(_nothing, True), (_outlive, False), (_break, False)],
    ids=["nothing happens", "it is too old", "the server closed it"],
)
def test_the_next_task_uses_the_connection_unless_it_is_old_or_broken(
    happens: Callable[[], None], *, kept: bool
) -> None:
    connection.close()  # that of the tests before may be too old
    before = _server_process()
    happens()
    DjangoWorkerFixup(app).close_database()
    close_old_connection()
    assert (_server_process() == before) is kept
