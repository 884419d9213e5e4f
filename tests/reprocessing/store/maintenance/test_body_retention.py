"""Bodies are deleted before the history if a DLQ keeps them for fewer days, and never while a letter may be sent."""

from __future__ import annotations

from functools import partial

import pytest

from reprocessing.models import Attempt, DeadLetterQueue, Letter, Payload, Revision
from reprocessing.store.maintenance import body_retention
from reprocessing.store.ordering import lanes
from tests.race.abreast import behind
from tests.reprocessing.pipeline.bench import Clock
from tests.reprocessing.store.explained import explained
from tests.reprocessing.store.seeded_letters import nothing_is_vacuumed, with_statistics
from tests.reprocessing.store.stock import Stock

pytestmark = pytest.mark.django_db(transaction=True)

DAY = 86_400
KEEP = 7
#: Letters without a body, and the buffers of a few descents in an index.
BODILESS, MOST = 1_000, 20


def _stock(keep: int | None = KEEP) -> Stock:
    stock = Stock()
    DeadLetterQueue.objects.update(keep_bodies=keep)
    return stock


def _finished(stock: Stock, **fields: object) -> Letter:
    return stock.another_letter(**{"state": "delivered", "finished_at": lanes.database_now(), **fields})


def _delete(stock: Stock) -> int:
    deleted = len(body_retention.delete_bodies(stock.dlq.pk, limit=100))
    body_retention.store_deleted_through(stock.dlq.pk)
    return deleted


def _has_body(letter: Letter) -> bool:
    letter.refresh_from_db()
    kept = Payload.objects.filter(letter=letter).exists()
    assert kept is (letter.body_deleted_at is None)
    return kept


@pytest.mark.parametrize("state", ["delivered", "discarded"])
def test_a_body_is_deleted_after_its_days_and_not_before(state: str, clock: Clock) -> None:
    stock = _stock()
    letter = _finished(stock, state=state)
    clock.advance(KEEP * DAY - 60)
    assert (_delete(stock), _has_body(letter)) == (0, True)
    clock.advance(61)
    assert (_delete(stock), _has_body(letter)) == (1, False)


@pytest.mark.parametrize("state", ["captured", "waiting", "sending", "awaiting", "parked"])
def test_an_unfinished_or_parked_letter_keeps_its_body(state: str, clock: Clock) -> None:
    parked = {"reason": "refused", "finished_at": lanes.database_now()} if state == "parked" else {}
    stock = _stock()
    letter = stock.another_letter(state=state, **parked)
    clock.advance(100 * DAY)
    assert (_delete(stock), _has_body(letter)) == (0, True)


def test_a_dlq_that_keeps_bodies_as_long_as_history_deletes_none(clock: Clock) -> None:
    stock = _stock(keep=None)
    letter = _finished(stock)
    clock.advance(100 * DAY)
    assert (body_retention.dlqs_with_body_retention(), _delete(stock), _has_body(letter)) == ([], 0, True)


def test_a_letter_with_an_open_attempt_keeps_its_body_until_the_attempt_is_closed(clock: Clock) -> None:
    stock = _stock()
    open_one, other = _finished(stock), _finished(stock)
    attempt = stock.attempt(open_one, run=stock.run)
    clock.advance(KEEP * DAY + 1)
    assert (_delete(stock), _has_body(open_one), _has_body(other)) == (1, True, False)
    Attempt.objects.filter(pk=attempt.pk).update(outcome="accepted", closed_at=lanes.database_now())
    assert (_delete(stock), _has_body(open_one)) == (1, False)


def test_the_edits_of_a_letter_are_deleted_with_its_body(clock: Clock) -> None:
    stock = _stock()
    letter = _finished(stock)
    edit = Revision.objects.create(
        letter=letter, no=1, body=b"new", attributes=b"{}", body_hash=b"n" * 32, previous_body_hash=b"b" * 32, size=3,
        by="ann", reason="amount",
    )  # fmt: skip
    Letter.objects.filter(pk=letter.pk).update(revision=edit)
    clock.advance(KEEP * DAY + 1)
    assert (_delete(stock), _has_body(letter), Revision.objects.count()) == (1, False, 0)


@pytest.mark.soak
def test_letters_without_a_body_are_not_read_again(clock: Clock) -> None:
    with nothing_is_vacuumed():
        stock = _stock()
        now = lanes.database_now()
        for letter in stock.more_letters(BODILESS):
            letter.state, letter.finished_at = "delivered", now
            letter.save()
        clock.advance(KEEP * DAY + 1)
        while body_retention.delete_bodies(stock.dlq.pk, limit=100):
            pass
        body_retention.store_deleted_through(stock.dlq.pk)
        with_statistics()
        with explained() as found:
            assert body_retention.delete_bodies(stock.dlq.pk, limit=100) == []
    assert [one.buffers for one in found if one.buffers > MOST or one.scanned] == []


def test_bodies_that_end_earlier_by_a_new_setting_are_deleted_although_the_setting_changed_meanwhile(
    clock: Clock,
) -> None:
    stock = _stock()
    letter = _finished(stock)
    clock.advance(2 * DAY)

    def keep_one_day() -> None:
        DeadLetterQueue.objects.filter(pk=stock.dlq.pk).update(keep_bodies=1)

    behind(keep_one_day, partial(body_retention.store_deleted_through, stock.dlq.pk))
    assert (_delete(stock), _has_body(letter)) == (1, False)
