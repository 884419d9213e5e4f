"""Without redrive ids, each new message is compared with the letters that may be in a queue, and with no others."""

from __future__ import annotations

from typing import Final, LiteralString

import pytest
from django.db import connection

from reprocessing.models import Letter, Revision
from reprocessing.store.capture import received_copies
from tests.reprocessing.store.explained import explained
from tests.reprocessing.store.seeded_letters import nothing_is_vacuumed, with_statistics
from tests.reprocessing.store.stock import NOW, Stock

pytestmark = pytest.mark.django_db(transaction=True)

#: Delivered letters, in more than 100 pages, and buffers that the statement may read.
DELIVERED: Final = 3_000
MOST: Final = 40

_DELIVERED: Final[LiteralString] = """
WITH letters AS (
    INSERT INTO redrive_letter (public_id, dlq_id, message_id, state, body_hash, size, first_sent_at, finished_at)
    SELECT gen_random_uuid(), %(dlq)s, 'sent-' || n, 'delivered', 'delivered', 9, redrive_now(), redrive_now()
      FROM generate_series(1, %(letters)s::int) n
    RETURNING id
)
INSERT INTO redrive_attempt (letter_id, lane_id, target_id, no, epoch, fence, opened_at, closed_at, outcome, holds_lane)
SELECT id, %(lane)s, %(target)s, 1, 0, 1, redrive_now(), redrive_now(), 'accepted', false FROM letters
"""


def _edit(letter: Letter) -> Revision:
    return Revision.objects.create(
        letter=letter, no=1, body=b"new", attributes=b"{}", body_hash=b"new", previous_body_hash=b"old", size=3,
        by="anna", reason="repaired",
    )  # fmt: skip


def test_letters_that_may_be_in_a_queue_are_found_by_their_body_and_by_their_edits() -> None:
    stock = Stock()
    hashes = [b"open", b"unknown", b"returned", b"edited", b"not sent"]
    is_open, unknown, returned, edited, _ = (stock.another_letter(body_hash=one) for one in hashes)
    stock.attempt(is_open)
    stock.attempt(unknown, outcome="unknown", closed_at=NOW)
    stock.attempt(returned, outcome="unknown", closed_at=NOW, returned_at=NOW)
    stock.attempt(edited, outcome="unknown", closed_at=NOW)
    _edit(edited)
    asked = [*hashes, b"new", b"old", b"another"]
    assert received_copies.doubtful_hashes(asked) == {b"open", b"unknown", b"edited", b"new", b"old"}
    assert received_copies.doubtful_hashes([b"another"]) == set()


@pytest.mark.parametrize("known", [True, False], ids=["with statistics", "without"])
def test_delivered_letters_are_not_read(*, known: bool) -> None:
    with nothing_is_vacuumed():
        stock = Stock()
        values = {"dlq": stock.dlq.pk, "lane": stock.lane.pk, "target": stock.target.pk, "letters": DELIVERED}
        with connection.cursor() as cursor:
            cursor.execute(_DELIVERED, values)
        stock.attempt(outcome="unknown", closed_at=NOW)
        if known:
            with_statistics()
        with explained() as found:
            assert received_copies.doubtful_hashes([b"b" * 32, b"delivered"]) == {b"b" * 32}
    assert [(one.scanned, one.buffers <= MOST) for one in found] == [(frozenset(), True)]
