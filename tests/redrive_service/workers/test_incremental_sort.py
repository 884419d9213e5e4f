"""Worker processes turn PostgreSQL's incremental sort off; other processes keep it, for the pages of the admin."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import connection
from django.db.backends.signals import connection_created

from redrive_service import celery

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    connection.close()
    yield
    connection_created.disconnect(dispatch_uid="redrive_service: enable_incremental_sort")
    connection.close()


def sorts_incrementally() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SHOW enable_incremental_sort")
        return str(cursor.fetchone()[0])


def test_a_worker_process_sorts_whole_results_and_other_processes_as_postgresql_likes() -> None:
    assert sorts_incrementally() == "on"
    celery.sort_whole_results()
    connection.close()
    assert sorts_incrementally() == "off"
