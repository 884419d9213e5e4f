from __future__ import annotations

from contextlib import ExitStack
from typing import Final, LiteralString

import pytest
from django.db import connection

from reprocessing.domain.payloads.sealing import Part
from reprocessing.models import DeadLetterQueue, Letter, ParkingQueueMessage, Payload
from reprocessing.store.maintenance import parking_queue_outbox
from reprocessing.store.ordering.lanes import database_now
from reprocessing.store.payloads import content
from tests.reprocessing.admin.parking_lot.parked_messages import dlq, parked
from tests.reprocessing.payload_rings import NEW, OLD, Rings, rings
from tests.reprocessing.pipeline.bench import Workbench
from tests.reprocessing.store.explained import explained
from tests.reprocessing.store.seeded_letters import nothing_is_vacuumed, with_statistics

__all__ = ["rings"]

pytestmark = pytest.mark.django_db(transaction=True)

_MESSAGES: Final[LiteralString] = """
WITH letters AS (
    INSERT INTO redrive_letter (public_id, dlq_id, message_id, source_id, state, body_hash, size, first_sent_at)
    SELECT gen_random_uuid(), %(dlq)s, n::text, %(source)s, 'captured', sha256(int8send(n)), 9, redrive_now()
      FROM generate_series(1, 3000::bigint) n
    RETURNING id, dlq_id
)
INSERT INTO redrive_parking_queue_message (letter_id, dlq_id, parking_event, sent_at)
SELECT id, dlq_id, 'left', %(sent_at)s::timestamptz FROM letters
"""


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


def test_messages_about_letters_that_cannot_be_decrypted_wait_and_stop_no_others(rings: Rings) -> None:
    source = dlq()
    DeadLetterQueue.objects.update(parking_url="https://sqs.local/parking")
    rings(OLD)
    sealer = content.sealer_of(source.dlq_id, database_now().date())
    lost, _ = parked(source), parked(source, body=b"readable")
    body = sealer.bytes(b"canary", Part.BODY, of=lost.message_id)
    Payload.objects.filter(letter=lost).delete()
    Payload.objects.create(letter=lost, body=body, attributes=b"{}", system={})
    for state in ("discarded", "parked"):
        reason = "stale" if state == "parked" else ""
        Letter.objects.update(state=state, reason=reason)
    rings(NEW)
    ParkingQueueMessage.objects.filter(parking_event="left").delete()
    for limit in (500, 1):
        found = parking_queue_outbox.pending_messages(source.dlq_id, limit=limit)
        assert [message.body for message in found] == [b"readable"]


@pytest.mark.soak
def test_pending_messages_are_found_without_reading_those_of_other_dlqs() -> None:
    with nothing_is_vacuumed():
        mine, other = dlq("mine"), dlq("other")
        with connection.cursor() as cursor:
            for source, sent_at in ((mine, database_now()), (other, None)):
                cursor.execute(_MESSAGES, {"dlq": source.dlq_id, "source": source.pk, "sent_at": sent_at})
        letter = parked(mine)
        ParkingQueueMessage.objects.create(letter=letter, dlq=mine.dlq, parking_event="parked")
        with_statistics()
        with explained() as found:
            pending = parking_queue_outbox.pending_messages(mine.dlq_id, limit=500)
    assert [message.public_id for message in pending] == [letter.public_id]
    assert max(each.buffers for each in found) < 30
