"""Only one apply writes at a time: the second waits, sees what the first wrote, and makes a new plan."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection, transaction

from reprocessing.models import DeadLetterQueue
from reprocessing.store.configuration import apply_lock
from tests.reprocessing.commands.configuration.conftest import Apply

pytestmark = pytest.mark.django_db(transaction=True)
_WAITS = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"


def waiting() -> int:
    with connection.cursor() as cursor:
        cursor.execute(_WAITS)
        return int(cursor.fetchone()[0])


def test_the_second_apply_waits_for_the_first_and_plans_anew(apply: Apply) -> None:
    url = "http://127.0.0.1:9/0/orders"
    DeadLetterQueue.objects.create(name="orders", url=url, arn="arn:aws:sqs:us-east-1:0:orders", region="us-east-1")

    def second() -> str:
        try:
            return apply(f"dlqs:\n  orders:\n    url: {url}\n    max_attempts: 5\n")
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            apply_lock.lock_applies()
            DeadLetterQueue.objects.update(wave_success=0.5)
            said = pool.submit(second)
            until = time.monotonic() + 30
            while not waiting() and not said.done() and time.monotonic() < until:
                time.sleep(0.01)
            assert not said.done()
        assert said.result(30).splitlines() == [
            "~ DLQ orders",
            "    max_attempts: 3 → 5",
            "    wave_success: 0.5 → 0.8",
            "Applied: 1 object changed.",
        ]
