"""Lists and counts of letters do not read the finished letters that they do not show."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from datetime import timedelta
from functools import partial
from typing import Final, LiteralString, TypeVar

import pytest
from django.db import connection

from reprocessing.domain.parking_lot.message_filter import MessageFilter
from reprocessing.management.commands import redrive_status
from reprocessing.models import Letter, Run
from reprocessing.store.capture import capture_times
from reprocessing.store.ordering.lanes import database_now
from reprocessing.store.parking_lot import filtered_letters
from reprocessing.store.routing import routable_letters
from reprocessing.store.runs import arrived_since
from reprocessing.store.runs.arrived_since import Arrived
from reprocessing.store.search import filter_conditions, open_messages
from tests.reprocessing.store.explained import explained
from tests.reprocessing.store.seeded_letters import nothing_is_vacuumed, with_statistics
from tests.reprocessing.store.stock import Stock

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.soak]

Answer = TypeVar("Answer")

#: Delivered letters, in about 250 pages; buffers that a statement may read; and letters of a page.
DELIVERED: Final = 6_000
MOST: Final = 50
PAGE: Final = 10

# Of two DLQs in turn, captured and delivered one after the other, a month ago.
_DELIVERED: Final[LiteralString] = """
INSERT INTO redrive_letter (public_id, dlq_id, message_id, state, body_hash, size, first_sent_at, captured_at,
                            finished_at)
SELECT gen_random_uuid(), (%(dlqs)s::bigint[])[1 + n %% 2], 'done-' || n, 'delivered', 'hash', 9, t.at, t.at, t.at
  FROM generate_series(1, %(delivered)s::int) n
 CROSS JOIN LATERAL (SELECT redrive_now() - interval '30 days' + n * interval '1 s' AS at) t
"""


@pytest.fixture
def stock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stock]:
    """A DLQ with one queued letter, which was captured just now, after the letters of the history."""
    for module in (filter_conditions, filtered_letters):  # it sets a time limit, which cannot be explained
        monkeypatch.setattr(module, "search_timeout", nullcontext)
    monkeypatch.setattr(filtered_letters, "MAX_COUNT", 2 * PAGE)
    with nothing_is_vacuumed():
        stock = Stock()
        stock.letter.delete()
        with connection.cursor() as cursor:
            cursor.execute(_DELIVERED, {"dlqs": [stock.dlq.pk, Stock().dlq.pk], "delivered": DELIVERED})
        Letter.objects.filter(state="waiting").delete()
        stock.letter = stock.another_letter()
        with_statistics()
        yield stock


def _cheap(read: Callable[[], Answer]) -> Answer:
    """Return what a function returns, whose statements may read few buffers."""
    with explained() as found:
        answer = read()
    assert {one.text: one.buffers for one in found if one.buffers > MOST} == {}
    return answer


@pytest.mark.parametrize("of_dlq", [True, False], ids=["of a DLQ", "of all DLQs"])
def test_queued_messages_are_listed_and_counted_without_finished_ones(stock: Stock, *, of_dlq: bool) -> None:
    criteria = MessageFilter(states=("waiting",), dlq=stock.dlq.pk if of_dlq else None)
    page = _cheap(lambda: open_messages.open_page(criteria, below=None, limit=PAGE))
    assert ([letter.id for letter in page.letters], page.n) == ([stock.letter.pk], 1)


@pytest.mark.parametrize("of", ["a DLQ", "all DLQs", "seen DLQs"])
def test_a_page_of_delivered_messages_reads_only_the_messages_of_the_page(stock: Stock, of: str) -> None:
    criteria = MessageFilter(
        states=("delivered",), dlq=stock.dlq.pk if of == "a DLQ" else None,
        dlqs=(stock.dlq.pk,) if of == "seen DLQs" else None,
    )  # fmt: skip
    first = _cheap(lambda: filtered_letters.letter_page(criteria, below=None, limit=PAGE))
    last = first.letters[-1]
    assert last.finished_at is not None
    below = (last.finished_at, last.id)
    second = _cheap(lambda: filtered_letters.letter_page(criteria, below=below, limit=PAGE))
    every = Letter.objects.filter(state="delivered", **({} if of == "all DLQs" else {"dlq": stock.dlq.pk}))
    newest = list(every.order_by("-finished_at", "-pk").values_list("pk", flat=True)[: 2 * PAGE])
    assert [letter.id for page in (first, second) for letter in page.letters] == newest
    assert first.n == second.n == filtered_letters.MAX_COUNT + 1


def test_discarded_messages_are_listed_without_delivered_ones(stock: Stock) -> None:
    discarded = [stock.another_letter(state="discarded", lane=None, finished_at=database_now()) for _ in range(2)]
    with_statistics()
    criteria = MessageFilter(states=("discarded",))
    page = _cheap(lambda: filtered_letters.letter_page(criteria, below=None, limit=PAGE))
    assert ([letter.id for letter in page.letters], page.n) == ([letter.pk for letter in reversed(discarded)], 2)


@pytest.mark.parametrize("of_dlq", [True, False], ids=["of a DLQ", "of all DLQs"])
def test_unfinished_messages_before_a_time_are_counted_without_finished_ones(stock: Stock, *, of_dlq: bool) -> None:
    dlq = stock.dlq.pk if of_dlq else None
    later = database_now() + timedelta(minutes=1)
    assert _cheap(lambda: routable_letters.count_older(since=later, dlq=dlq)) == 1


def test_messages_of_a_dlq_since_a_time_are_read_without_older_ones(stock: Stock) -> None:
    new, since = stock.another_letter(state="captured", lane=None), database_now() - timedelta(days=7)
    read = _cheap(lambda: routable_letters.captured_since(since=since, dlq=stock.dlq.pk, below=None, bodies=True))
    assert [letter.letter_id for letter in read] == [new.pk, stock.letter.pk]
    below = stock.letter.pk
    assert not _cheap(lambda: routable_letters.captured_since(since=since, dlq=stock.dlq.pk, below=below, bodies=True))


def test_messages_that_arrived_since_the_start_of_a_run_are_counted_without_older_ones(stock: Stock) -> None:
    Run.objects.filter(pk=stock.run.pk).update(started_at=database_now() - timedelta(minutes=5))
    assert _cheap(lambda: arrived_since.arrived_since_start(stock.run.pk)) == Arrived(1, is_minimum=False)


def test_messages_that_arrived_since_a_start_long_ago_are_counted_among_the_newest(
    stock: Stock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrived_since, "MAX_COUNT", 2 * PAGE)
    Run.objects.filter(pk=stock.run.pk).update(started_at=database_now() - timedelta(days=31))
    assert _cheap(lambda: arrived_since.arrived_since_start(stock.run.pk)) == Arrived(PAGE + 1, is_minimum=True)
    fourth = Letter.objects.filter(dlq=stock.dlq).order_by("-pk")[3]
    Run.objects.filter(pk=stock.run.pk).update(started_at=fourth.captured_at)
    assert _cheap(lambda: arrived_since.arrived_since_start(stock.run.pk)) == Arrived(3, is_minimum=False)


def test_the_first_letter_since_a_time_is_found_among_letters_with_gaps(stock: Stock) -> None:
    Letter.objects.filter(message_id__endswith="7").delete()
    kept = list(Letter.objects.order_by("pk"))
    for wanted in (kept[0], kept[1], kept[2_000], kept[-2], kept[-1]):
        since = wanted.captured_at + capture_times._DISORDER
        before = Letter.objects.filter(captured_at__lt=wanted.captured_at)
        first = _cheap(partial(capture_times.first_id, since))
        assert Letter.objects.filter(pk__lt=first).count() == before.count()
    assert capture_times.first_id(database_now() + timedelta(days=9)) == kept[-1].pk + 1


def test_a_message_is_found_by_each_of_its_ids_without_reading_others(stock: Stock) -> None:
    attempt = stock.attempt(sent_message_id="sent-1")
    for text in (stock.letter.message_id, str(stock.letter.public_id), str(attempt.sent_message_id)):
        found = _cheap(partial(redrive_status.find_letters, text, None))
        assert [letter.pk for letter in found] == [stock.letter.pk]
