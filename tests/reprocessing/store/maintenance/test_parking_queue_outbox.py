from __future__ import annotations

from contextlib import ExitStack

import pytest

from reprocessing.models import Letter, ParkingQueueMessage
from reprocessing.store.maintenance import parking_queue_outbox
from tests.reprocessing.pipeline.bench import Workbench

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def bench() -> Workbench:
    """Three parked letters of 9 MiB each."""
    bench = Workbench(fields={"max_attempts": 1, "parking_url": "https://sqs.local/parking"})
    for body in "abc":
        bench.bury(body)
    bench.ready()
    with ExitStack() as refusing:
        for body in "abc":
            refusing.enter_context(bench.refusing(body))
        bench.replay()
    Letter.objects.update(size=9 * 1024 * 1024)
    return bench


def test_pending_messages_come_in_portions_of_bounded_bytes(bench: Workbench) -> None:
    first = parking_queue_outbox.pending_messages(bench.dlq.pk, limit=500)
    assert len(first) == 2  # the second begins within 16 MiB
    parking_queue_outbox.record_sent([message.notice_id for message in first])
    assert len(parking_queue_outbox.pending_messages(bench.dlq.pk, limit=500)) == 1


def test_a_message_about_a_letter_that_left_the_parking_lot_has_no_body(bench: Workbench) -> None:
    ParkingQueueMessage.objects.update(parking_event="left")
    assert [message.body for message in parking_queue_outbox.pending_messages(bench.dlq.pk, limit=500)] == [
        b"",
        b"",
        b"",
    ]
