from __future__ import annotations

from typing import Final, LiteralString

import pytest
from django.db import connection

from reprocessing.store.capture import capture_lease
from tests.reprocessing.store.explained import explained
from tests.reprocessing.store.seeded_letters import nothing_is_vacuumed, with_statistics
from tests.reprocessing.store.stock import Stock

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.soak]

#: Of 6,000 copies, every second is deleted, and the others are to be deleted.
_COPIES: Final[LiteralString] = """
INSERT INTO redrive_dlq_copy (dlq_id, message_id, letter_id, state, handle, visible_until, gone_at)
SELECT %(dlq)s, gen_random_uuid()::text, %(letter)s, CASE WHEN n %% 2 = 0 THEN 'gone' ELSE 'delete' END, 'handle',
       redrive_now() + interval '1 hour', CASE WHEN n %% 2 = 0 THEN redrive_now() END
  FROM generate_series(1, 6000) n
"""


def test_copies_to_delete_are_read_in_the_order_of_their_index() -> None:
    with nothing_is_vacuumed():
        stock = Stock()
        with connection.cursor() as cursor:
            cursor.execute(_COPIES, {"dlq": stock.dlq.pk, "letter": stock.letter.pk})
        with_statistics()
        with explained() as found:
            first = capture_lease.copies_to_delete(stock.dlq.pk, above="", limit=10)
            more = capture_lease.copies_to_delete(stock.dlq.pk, above=first[-1].message_id, limit=10)
    ids = [copy.message_id for copy in first + more]
    assert (len(ids), ids) == (20, sorted(set(ids)))
    assert {each.buffers for each in found if each.buffers > 30 or each.scanned} == set()
