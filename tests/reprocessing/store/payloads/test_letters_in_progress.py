"""Letters in progress are counted without the finished letters of their DLQ."""

from __future__ import annotations

from typing import Final, LiteralString

import pytest
from django.db import connection

from reprocessing.models import Letter, Run
from reprocessing.store.payloads import removal
from tests.reprocessing.store.explained import explained
from tests.reprocessing.store.seeded_letters import nothing_is_vacuumed, with_statistics, without_statistics
from tests.reprocessing.store.stock import NOW, Stock

pytestmark = pytest.mark.django_db(transaction=True)

#: Finished letters, in about 150 pages; and the buffers that the statement may read.
FINISHED: Final = 3_000
MOST: Final = 40

_FINISHED: Final[LiteralString] = """
WITH letters AS (
    INSERT INTO redrive_letter (public_id, dlq_id, message_id, state, body_hash, size, first_sent_at, finished_at)
    SELECT gen_random_uuid(), %s, 'old-' || n, 'delivered', 'hash', 9, redrive_now(), redrive_now()
      FROM generate_series(1, %s::int) n RETURNING id
)
INSERT INTO redrive_attempt (letter_id, lane_id, target_id, no, epoch, fence, opened_at, closed_at, outcome, holds_lane)
SELECT id, %s, %s, 1, 0, 1, redrive_now(), redrive_now(), 'accepted', false FROM letters
"""


def _letters(stock: Stock) -> list[int]:
    """Create a letter in each state, with an open attempt and without; return the ids of all letters."""
    ended = Run.objects.create(name="ended", dlq=stock.dlq, state="finished", asked_by="a test")
    finished = {"finished_at": NOW}
    for fields in (
        {"state": "captured"}, {"state": "waiting"}, {"state": "waiting", "run": ended},
        {"state": "waiting", "run": None}, {"state": "sending"}, {"state": "awaiting"},
        {"state": "delivered", **finished}, {"state": "discarded", **finished},
        {"state": "parked", "reason": "refused", **finished},
    ):  # fmt: skip
        stock.another_letter(**fields)
        stock.attempt(stock.another_letter(**fields))
        stock.attempt(stock.another_letter(**fields), closed_at=NOW, outcome="unknown")
    return list(Letter.objects.filter(dlq=stock.dlq).values_list("pk", flat=True))


def test_the_number_in_progress_is_that_of_the_letters_in_progress() -> None:
    stock, other = Stock(), Stock()
    letters = _letters(stock)
    busy = removal.letters_in_progress(letters)
    assert 0 < len(busy) < len(letters)
    assert removal.count_in_progress(stock.dlq.pk) == len(busy)
    assert removal.count_in_progress(other.dlq.pk) == 1


@pytest.mark.soak
@pytest.mark.parametrize("known", [True, False], ids=["with statistics", "without"])
def test_letters_in_progress_are_counted_without_finished_letters(*, known: bool) -> None:
    with nothing_is_vacuumed():
        stock = Stock()
        with connection.cursor() as cursor:
            cursor.execute(_FINISHED, [stock.dlq.pk, FINISHED, stock.lane.pk, stock.target.pk])
        stock.attempt(stock.another_letter(state="discarded", finished_at=NOW))
        (with_statistics if known else without_statistics)()
        with explained() as found:
            assert removal.count_in_progress(stock.dlq.pk) == 2
    assert [one.buffers for one in found if one.buffers > MOST or one.scanned] == []
