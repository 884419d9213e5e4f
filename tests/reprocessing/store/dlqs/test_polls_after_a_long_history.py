"""Polls and pages of a DLQ do not read its finished letters and their copies."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Final, LiteralString

import pytest
from django.db import connection

from reprocessing.models import DeadLetterQueue
from reprocessing.pipeline.dlqs.examine import gathered
from reprocessing.store.aws import aws_redrive_handover
from reprocessing.store.capture import capture_lease
from reprocessing.store.dlqs import dlq_status
from reprocessing.store.ordering import lanes
from tests.reprocessing.store.explained import explained
from tests.reprocessing.store.seeded_letters import nothing_is_vacuumed, with_statistics, without_statistics
from tests.reprocessing.store.stock import Stock

pytestmark = pytest.mark.django_db(transaction=True)

#: Finished letters, with copies in about 60 pages; the statements may read so many.
FINISHED: Final = 3_000
MOST: Final = 30

_FINISHED: Final[LiteralString] = """
WITH n AS (SELECT n FROM generate_series(1, %(finished)s::int) n), letters AS (
    INSERT INTO redrive_letter (public_id, dlq_id, message_id, state, body_hash, size, first_sent_at, finished_at)
    SELECT gen_random_uuid(), %(dlq)s, 'done-' || n, 'delivered', 'hash', 9, redrive_now(), redrive_now() FROM n
    RETURNING id, message_id
)
INSERT INTO redrive_dlq_copy (dlq_id, message_id, letter_id, state, handle, visible_until, gone_at)
SELECT %(dlq)s, message_id, id, 'gone', 'handle', redrive_now(), redrive_now() - make_interval(hours => %(hours)s)
  FROM letters
"""


def _finish(stock: Stock, *, hours: int) -> None:
    """Add finished letters whose copies were deleted from the DLQ some hours ago."""
    with connection.cursor() as cursor:
        cursor.execute(_FINISHED, {"dlq": stock.dlq.pk, "finished": FINISHED, "hours": hours})


def _visible_copies(stock: Stock) -> object:
    DeadLetterQueue.objects.filter(pk=stock.dlq.pk).update(
        mode="observe", depth_visible=9, depth_at=lanes.database_now() - timedelta(minutes=1)
    )
    return dlq_status.visible_copies(stock.dlq.pk, visibility=600, count_lag=60.0)


@pytest.mark.soak
@pytest.mark.parametrize(
    "read",
    [
        lambda stock: dlq_status.dlq_statuses(stock.dlq.pk),
        lambda stock: aws_redrive_handover.handover_blockers(stock.dlq.pk),
        lambda stock: gathered._on_lanes(stock.dlq.pk),
        lambda stock: capture_lease.count_invisible(stock.dlq.pk, count_lag=60.0),
        _visible_copies,
    ],
    ids=["status", "handover to AWS", "letters on lanes", "hidden copies", "visible copies"],
)
@pytest.mark.parametrize("known", [True, False], ids=["with statistics", "without"])
def test_finished_letters_are_not_read(read: Callable[[Stock], object], *, known: bool) -> None:
    with nothing_is_vacuumed():
        stock = Stock()
        _finish(stock, hours=1)
        (with_statistics if known else without_statistics)()
        with explained() as found:
            read(stock)
    assert [(one.name, one.buffers) for one in found if one.buffers > MOST or one.scanned] == []


@pytest.mark.soak
@pytest.mark.parametrize(
    "read",
    [lambda stock: capture_lease.count_invisible(stock.dlq.pk, count_lag=60.0), _visible_copies],
    ids=["hidden copies", "visible copies"],
)
@pytest.mark.parametrize("known", [True, False], ids=["with statistics", "without"])
def test_copies_just_deleted_from_another_dlq_are_not_read(read: Callable[[Stock], object], *, known: bool) -> None:
    with nothing_is_vacuumed():
        stock = Stock()
        _finish(Stock(), hours=0)
        (with_statistics if known else without_statistics)()
        with explained() as found:
            read(stock)
    assert [(one.name, one.buffers) for one in found if one.buffers > MOST or one.scanned] == []
