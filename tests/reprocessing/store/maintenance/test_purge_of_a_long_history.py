"""A purge reads only letters past their retention, however many finished letters are kept."""

from __future__ import annotations

from typing import Final, LiteralString

import pytest
from django.db import connection

from reprocessing.store.maintenance import retention
from tests.reprocessing.store.explained import explained
from tests.reprocessing.store.seeded_letters import nothing_is_vacuumed, with_statistics
from tests.reprocessing.store.stock import Stock

pytestmark = pytest.mark.django_db(transaction=True)

#: Letters that are kept, in about 150 pages, and the buffers of two descents in an index.
KEPT: Final = 3_000
MOST: Final = 10
DAY: Final = 86_400

_KEPT: Final[LiteralString] = """
INSERT INTO redrive_letter (public_id, dlq_id, message_id, state, body_hash, size, first_sent_at, finished_at)
SELECT gen_random_uuid(), %s, 'kept-' || n, 'delivered', 'hash', 9, redrive_now(), redrive_now() - interval '1 day'
  FROM generate_series(1, %s::int) n
"""


@pytest.mark.soak
@pytest.mark.parametrize("known", [True, False], ids=["with statistics", "without"])
def test_a_purge_that_finds_nothing_reads_no_kept_letter(*, known: bool) -> None:
    with nothing_is_vacuumed():
        stock = Stock()
        with connection.cursor() as cursor:
            cursor.execute(_KEPT, [stock.dlq.pk, KEPT])
        if known:
            with_statistics()
        with explained() as found:
            assert retention.delete_letters(stock.dlq.pk, history=90.0 * DAY, limit=1_000) == 0
    assert [one.buffers for one in found if one.buffers > MOST or one.scanned] == []
