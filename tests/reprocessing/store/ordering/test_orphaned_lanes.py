"""The attempt that a killed worker left open is found without reading other attempts, letters and lanes."""

from __future__ import annotations

from typing import Final, LiteralString

import pytest
from django.db import connection, transaction

from reprocessing.models import Attempt, Lane, Letter
from reprocessing.store.ordering import lanes, orphaned_lanes
from tests.reprocessing.store.explained import explained
from tests.reprocessing.store.seeded_letters import nothing_is_vacuumed, with_statistics
from tests.reprocessing.store.stock import Stock

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.soak]

#: Delivered letters of the lane, and other lanes with an open attempt. The tables have more than `MOST` pages.
OTHERS: Final = 3_000
#: Buffers of a statement that closes an attempt or changes a letter, with the entries in all their indexes.
MOST: Final = 60

_DELIVERED: Final[LiteralString] = """
WITH letter AS (
    INSERT INTO redrive_letter (public_id, dlq_id, message_id, source_id, target_id, lane_id, run_id, state, attempts,
                                planned, single, sequence, body_hash, size, first_sent_at, finished_at)
    SELECT gen_random_uuid(), %(dlq)s, 'delivered-' || n, %(source)s, %(target)s, %(lane)s, %(run)s, 'delivered', 1,
           true, false, n::text, 'hash', 9, redrive_now(), redrive_now()
      FROM generate_series(1, %(others)s::int) n
    RETURNING id
)
INSERT INTO redrive_attempt (letter_id, lane_id, target_id, run_id, no, epoch, fence, opened_at, taken_at, closed_at,
                             outcome, holds_lane)
SELECT id, %(lane)s, %(target)s, %(run)s, 1, 0, 0, redrive_now(), redrive_now(), redrive_now(), 'accepted', false
  FROM letter
"""
_OPEN: Final[LiteralString] = """
WITH lane AS (
    INSERT INTO redrive_lane (dlq_id, source_id, key_hash, run_id, phase)
    SELECT %(dlq)s, %(source)s, int8send(n), %(run)s, 'awaiting' FROM generate_series(1, %(others)s::int) n
    RETURNING id
), letter AS (
    INSERT INTO redrive_letter (public_id, dlq_id, message_id, source_id, target_id, lane_id, run_id, state, attempts,
                                planned, single, sequence, body_hash, size, first_sent_at)
    SELECT gen_random_uuid(), %(dlq)s, 'open-' || id, %(source)s, %(target)s, id, %(run)s, 'sending', 1,
           true, false, '1', 'hash', 9, redrive_now()
      FROM lane
    RETURNING id, lane_id
)
INSERT INTO redrive_attempt (letter_id, lane_id, target_id, run_id, no, epoch, fence, opened_at, holds_lane)
SELECT id, lane_id, %(target)s, %(run)s, 1, 0, 1, redrive_now(), true FROM letter
"""


def test_an_attempt_left_open_is_found_without_reading_other_rows() -> None:
    with nothing_is_vacuumed():
        stock = Stock()
        Letter.objects.update(state="sending", attempts=1)
        mine = stock.attempt(holds_lane=True)
        values = {
            "dlq": stock.dlq.pk, "source": stock.source.pk, "target": stock.target.pk, "lane": stock.lane.pk,
            "run": stock.run.pk, "others": OTHERS,
        }  # fmt: skip
        with connection.cursor() as cursor:
            cursor.execute(_DELIVERED, values)
            cursor.execute(_OPEN, values)
        Lane.objects.filter(pk=stock.lane.pk).update(
            phase="leased", owner="next", fence=2, due_at=lanes.database_now()
        )  # fmt: skip
        with_statistics()
        with explained() as found, transaction.atomic():
            closed = orphaned_lanes.close_attempts("next", [stock.lane.pk])
    assert len(closed) == 1
    assert Attempt.objects.get(pk=mine.pk).outcome == "unknown"
    assert Attempt.objects.filter(closed_at=None).count() == OTHERS
    assert Letter.objects.get(pk=stock.letter.pk).state == "waiting"
    assert {each.text[:40]: each.buffers for each in found if each.buffers > MOST or each.scanned} == {}
