"""Notices that a parking queue is owed come in portions that a worker can hold."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from reprocessing.models import DeadLetter, Notice
from reprocessing.store.maintenance import parking_queue_outbox
from tests.reprocessing.pipeline.bench import Workbench

pytestmark = pytest.mark.django_db(transaction=True)
MIB = 1024 * 1024


def _parked(bench: Workbench, *bodies: str) -> None:
    for body in bodies:
        bench.bury(body)
    bench.ready()
    with ExitStack() as refusing:
        for body in bodies:
            refusing.enter_context(bench.refusing(body))
        bench.replay()


def test_what_is_owed_is_told_in_portions_of_bounded_bytes() -> None:
    bench = Workbench(fields={"max_attempts": 1, "parking_url": "https://sqs.local/parking"})
    _parked(bench, "a", "b", "c")
    DeadLetter.objects.update(size=9 * MIB)
    first = parking_queue_outbox.owed(bench.dlq.pk, limit=500)
    assert len(first) == 2  # the second begins within 16 MiB
    parking_queue_outbox.sent([one.notice_id for one in first])
    assert len(parking_queue_outbox.owed(bench.dlq.pk, limit=500)) == 1


def test_of_a_letter_that_left_the_lot_no_bytes_are_told() -> None:
    bench = Workbench(fields={"max_attempts": 1, "parking_url": "https://sqs.local/parking"})
    _parked(bench, "a", "b", "c")
    DeadLetter.objects.update(size=9 * MIB)
    Notice.objects.update(news="left")
    assert [one.body for one in parking_queue_outbox.owed(bench.dlq.pk, limit=500)] == [b"", b"", b""]
