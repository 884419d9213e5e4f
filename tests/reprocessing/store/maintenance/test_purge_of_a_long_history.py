"""A purge reads only rows past their retention, however many are kept, and rows that must be kept only once."""

from __future__ import annotations

from typing import Final, LiteralString

import pytest
from django.db import connection

from reprocessing.store.maintenance import body_retention, retention
from tests.reprocessing.store.explained import explained
from tests.reprocessing.store.seeded_letters import nothing_is_vacuumed, with_statistics
from tests.reprocessing.store.stock import Stock

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.soak]

#: Rows that are kept, in about 150 pages; the buffers of two descents in an index; and those of a chunk of two rows.
KEPT: Final = 3_000
MOST: Final = 10
CHUNK_MOST: Final = 40
DAY: Final = 86_400
HISTORY: Final = 90.0 * DAY

_KEPT: Final[LiteralString] = """
INSERT INTO redrive_letter (public_id, dlq_id, message_id, state, body_hash, size, first_sent_at, finished_at)
SELECT gen_random_uuid(), %(dlq)s, 'kept-' || n, 'delivered', 'hash', 9, redrive_now(), redrive_now() - interval '1 day'
  FROM generate_series(1, %(rows)s::int) n
"""
_OLD: Final[LiteralString] = """
WITH letters AS (
    INSERT INTO redrive_letter (public_id, dlq_id, message_id, state, body_hash, size, first_sent_at, finished_at)
    SELECT gen_random_uuid(), %(dlq)s, 'old-' || lpad(n::text, 9, '0'), 'delivered', 'hash', 9, redrive_now(),
           redrive_now() - interval '100 days' + n * interval '1 second'
      FROM generate_series(1, %(rows)s::int) n
    RETURNING id
)
INSERT INTO redrive_payload (letter_id, body, attributes, system) SELECT id, 'body', '{}', '{}' FROM letters
"""
# SQS may still deliver a copy of the oldest letters.
_COPIES: Final[LiteralString] = """
INSERT INTO redrive_dlq_copy (dlq_id, message_id, letter_id, state, handle, visible_until, gone_at)
SELECT dlq_id, message_id, id, 'gone', 'none', redrive_now(), redrive_now() FROM redrive_letter
 WHERE dlq_id = %(dlq)s AND message_id LIKE 'old-%%' ORDER BY finished_at LIMIT %(kept)s
"""
# The oldest reports are about a stored letter.
_REPORTS: Final[LiteralString] = """
INSERT INTO redrive_report (public_id, message_id, verdict, type, message, fingerprint, happened_at, received_at,
                            digest)
SELECT CASE WHEN n <= %(kept)s THEN %(letter)s::uuid END, CASE WHEN n > %(kept)s THEN 'm-' || n END, 'failed',
       '', '', '', redrive_now(), redrive_now() - interval '100 days' + n * interval '1 second', sha256(int8send(n))
  FROM generate_series(1, %(rows)s::bigint) n
"""


def _seed(statement: LiteralString, values: dict[str, int | str]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)


def _old_letters(rows: int, *, kept: int = 0) -> Stock:
    """Create letters with bodies, past all retention. The oldest `kept` letters must be kept."""
    stock = Stock()
    _seed(_OLD, {"dlq": stock.dlq.pk, "rows": rows})
    _seed(_COPIES, {"dlq": stock.dlq.pk, "kept": kept})
    stock.dlq.keep_bodies = 7
    stock.dlq.save()
    with_statistics()
    return stock


@pytest.mark.parametrize("known", [True, False], ids=["with statistics", "without"])
def test_a_purge_that_finds_nothing_reads_no_kept_letter(*, known: bool) -> None:
    with nothing_is_vacuumed():
        stock = Stock()
        _seed(_KEPT, {"dlq": stock.dlq.pk, "rows": KEPT})
        if known:
            with_statistics()
        with explained() as found:
            assert retention.delete_letters(stock.dlq.pk, history=HISTORY, limit=1_000) == []
    assert [one.buffers for one in found if one.buffers > MOST or one.scanned] == []


def test_the_next_chunk_of_letters_does_not_read_again_what_must_be_kept() -> None:
    with nothing_is_vacuumed():
        stock = _old_letters(KEPT + 4, kept=KEPT)
        first = retention.delete_letters(stock.dlq.pk, history=HISTORY, limit=2)
        with explained() as found:
            second = retention.delete_letters(stock.dlq.pk, history=HISTORY, limit=2, after=first[-1])
    assert (len(first), len(second), first[-1].at < second[0].at) == (2, 2, True)
    assert [one.buffers for one in found if "FOR UPDATE" in one.text and one.buffers > CHUNK_MOST] == []


def test_the_next_chunk_of_bodies_does_not_read_again_what_follows_a_body_that_must_be_kept() -> None:
    with nothing_is_vacuumed():
        stock = _old_letters(KEPT)
        oldest = stock.dlq.letters.order_by("finished_at").exclude(finished_at=None)[0]
        stock.attempt(oldest, run=stock.run)
        first = body_retention.delete_bodies(stock.dlq.pk, limit=KEPT - 10)
        with explained() as found:
            second = body_retention.delete_bodies(stock.dlq.pk, limit=2, after=first[-1])
            body_retention.store_deleted_through(stock.dlq.pk)
    assert (len(first), len(second), first[-1].at < second[0].at) == (KEPT - 10, 2, True)
    assert [one.buffers for one in found if one.buffers > CHUNK_MOST] == []
    stock.dlq.refresh_from_db()
    assert stock.dlq.bodies_deleted_through == oldest.finished_at


def test_to_record_how_far_bodies_are_deleted_reads_no_later_letter() -> None:
    with nothing_is_vacuumed():
        stock = _old_letters(KEPT)
        body_retention.delete_bodies(stock.dlq.pk, limit=2)
        with explained() as found:
            body_retention.store_deleted_through(stock.dlq.pk)
    assert [one.buffers for one in found if one.buffers > CHUNK_MOST] == []


def test_the_next_chunk_of_reports_does_not_read_again_what_must_be_kept() -> None:
    with nothing_is_vacuumed():
        stock = Stock()
        _seed(_REPORTS, {"letter": str(stock.letter.public_id), "kept": KEPT, "rows": KEPT + 4})
        with_statistics()
        first = retention.delete_reports(history=HISTORY, limit=2)
        with explained() as found:
            second = retention.delete_reports(history=HISTORY, limit=2, after=first[-1])
    assert (len(first), len(second), first[-1].at < second[0].at) == (2, 2, True)
    assert [one.buffers for one in found if one.buffers > CHUNK_MOST] == []
