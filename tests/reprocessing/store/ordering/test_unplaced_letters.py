"""Letters without a place in a lane are found without reading the others, however many were captured."""

from __future__ import annotations

from typing import Final, LiteralString

import pytest
from django.db import connection

from reprocessing.store.ordering import placement
from tests.reprocessing.store.explained import explained
from tests.reprocessing.store.seeded_letters import nothing_is_vacuumed, with_statistics
from tests.reprocessing.store.stock import Stock

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.soak]

#: Captured letters with a place, in about 150 pages, and the buffers of some descents in an index.
PLACED: Final = 3_000
MOST: Final = 12

_PLACED: Final[LiteralString] = """
INSERT INTO redrive_letter (public_id, dlq_id, message_id, state, planned, body_hash, size, first_sent_at)
SELECT gen_random_uuid(), %s, 'placed-' || n, 'captured', true, 'hash', 9, redrive_now()
  FROM generate_series(1, %s::int) n
"""


@pytest.mark.parametrize("known", [True, False], ids=["with statistics", "without"])
def test_letters_with_a_place_are_not_read(*, known: bool) -> None:
    with nothing_is_vacuumed():
        stock = Stock()
        with connection.cursor() as cursor:
            cursor.execute(_PLACED, [stock.dlq.pk, PLACED])
        if known:
            with_statistics()
        letter = stock.another_letter(state="captured", planned=False, lane=None, run=None)
        with explained() as found:
            unplaced = placement.unplaced_letters(stock.dlq.pk, bodies=True, above=0)
            assert placement.unplaced_kinds(stock.dlq.pk) == [False]
            assert placement.count_undecryptable(stock.dlq.pk).untried == 1
    assert unplaced
    assert [one.id for one in unplaced.readable] == [letter.pk]
    assert {one.name: one.buffers for one in found if one.buffers > MOST} == {}
