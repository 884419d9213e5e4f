"""Finished letters are purged with their history, and what consumers reported about them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from itertools import count
from unittest.mock import Mock

import pytest
from django.db import DatabaseError

from reprocessing.conf import current
from reprocessing.domain.errors import StepsFailed
from reprocessing.models import Attempt, DeadLetterQueue, DlqCopy, Lane, Letter, Payload, Report, Reporter, Wave
from reprocessing.pipeline.maintenance import purge
from reprocessing.store.maintenance import retention
from reprocessing.store.maintenance.retention import ExpiredRow
from reprocessing.store.ordering.lanes import database_now as now
from reprocessing.store.replay import task_hints
from tests.reprocessing.pipeline.bench import KEYED, Clock, Workbench, redriven
from tests.reprocessing.pipeline.benches import bury_keyed
from tests.reprocessing.store.stock import NOW, Stock

pytestmark = pytest.mark.django_db(transaction=True)

DAY = timedelta(days=1)
#: Steps that delete rows in chunks, with two DLQs: letters of each, reports, hours, minutes, API calls.
STEPS = 6


@pytest.mark.soak
def test_a_delivered_letter_is_purged_after_its_history_and_its_lane_still_knows_what_is_stale(clock: Clock) -> None:
    bench = Workbench(fields=KEYED)
    bury_keyed(bench, "a2")
    bench.ready()
    bench.replay()
    clock.advance(bench.conf.history.total_seconds() - 60)
    purge.purge_expired(conf=bench.conf)
    assert Letter.objects.count() == 1
    clock.advance(61)
    assert not purge.purge_expired(conf=bench.conf)
    left = [model.__name__ for model in (Letter, Payload, Attempt, DlqCopy) if model.objects.exists()]
    assert (left, Lane.objects.count(), bench.lane().highest_sent_sequence is None) == ([], 1, False)
    bury_keyed(bench, "a1")
    bench.ready()
    bench.replay()
    assert (bench.letter().state, bench.letter().reason) == ("parked", "stale")


def test_a_purge_goes_group_by_group_until_none_is_left(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = redriven(*"abcde")
    monkeypatch.setattr(purge, "_GROUP", 2)
    clock.advance(bench.conf.history.total_seconds() + 1)
    assert (purge.purge_expired(conf=bench.conf), Letter.objects.count()) == (False, 0)


def _old_letters(stock: Stock, many: int) -> list[Letter]:
    """Create letters with bodies, that finished more than 90 days ago, the oldest first."""
    start = now() - 100 * DAY
    return [stock.another_letter(state="delivered", finished_at=start + timedelta(minutes=n)) for n in range(many)]


def _purge_in(turns: int, dice: Callable[[], float] = lambda: 0.0) -> bool:
    """Purge with time for so many chunks. With the default dice, the turns have the order of the steps."""
    return purge.purge_expired(conf=current(), seconds=float(turns), clock=count().__next__, dice=dice)


def _left(stock: Stock) -> int:
    return Letter.objects.filter(dlq=stock.dlq, state="delivered").count()


def test_a_purge_ends_in_time_and_each_dlq_has_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(purge, "_GROUP", 2)
    stocks = [Stock(), Stock()]
    for stock in stocks:
        _old_letters(stock, 5)
    assert (_purge_in(STEPS + 2), [_left(stock) for stock in stocks]) == (True, [1, 1])
    assert (_purge_in(STEPS + 2), [_left(stock) for stock in stocks]) == (False, [0, 0])


def test_a_purge_without_time_deletes_one_chunk_and_what_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(purge, "_GROUP", 2)
    stock = Stock()
    _old_letters(stock, 5)
    Wave.objects.create(run=stock.run, no=1, settled_at=now() - 100 * DAY, sent=1, failed=0)
    assert (_purge_in(0), _left(stock), Wave.objects.count()) == (True, 3, 0)


@pytest.mark.parametrize(("sign", "turns", "left"), [(1, 1, [1, 3]), (-1, STEPS - 1, [3, 1])])
def test_the_order_of_the_turns_is_random(
    sign: int, turns: int, left: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(purge, "_GROUP", 2)
    stocks = [Stock(), Stock()]
    for stock in stocks:
        _old_letters(stock, 3)
    rising = count()
    _purge_in(turns, lambda: float(sign * next(rising)))
    assert [_left(stock) for stock in stocks] == left


def test_what_a_purge_left_is_purged_soon(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(purge, "_GROUP", 2)
    task_hints.next_hint_round(most=1, least_life=1.0, most_life=1.0)
    _old_letters(Stock(), 3)
    due = []
    for turns in (1, 99):
        left = _purge_in(turns)
        clock.advance(2)  # longer than the first purge
        due.append((left, task_hints.claim_if_due("purge", every=3_600.0)))
    assert due == [(True, True), (False, False)]


def test_a_purge_that_ends_early_records_how_far_bodies_are_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(purge, "_GROUP", 2)
    stock = Stock()
    DeadLetterQueue.objects.update(keep_bodies=7)
    letters = [stock.another_letter(state="delivered", finished_at=now() - timedelta(days=20 - n)) for n in range(5)]
    assert _purge_in(2)  # a turn for letters, and a turn for bodies
    stock.dlq.refresh_from_db()
    assert stock.dlq.bodies_deleted_through == letters[2].finished_at
    assert not _purge_in(99)
    assert Payload.objects.filter(letter__in=letters).count() == 0


def test_reports_are_purged_when_no_letter_they_are_about_is_left() -> None:
    stock = Stock()
    Attempt.objects.create(
        letter=stock.letter, lane=stock.lane, target=stock.target, no=1, epoch=0, fence=1, opened_at=NOW,
        sent_message_id="sent", holds_lane=True,
    )  # fmt: skip
    reporter = Reporter.objects.create(name="shop", token_hash=b"1", added_by="ann")
    about: dict[str, dict[str, object]] = {
        "death": {"message_id": stock.letter.message_id},
        "attempt": {"message_id": "sent"},
        "letter": {"public_id": stock.letter.public_id},
        "nothing, lately": {"message_id": "m", "received_at": now() - DAY / 2},
        "nothing": {"message_id": "n"},
    }
    for name, named in about.items():
        values = {"verdict": "retrying", "happened_at": now(), "received_at": now() - 2 * DAY, "digest": name.encode()}
        Report.objects.create(reporter=reporter, type=name, **{**values, **named})
    purge.purge_expired(conf=replace(current(), history=DAY))
    assert list(Report.objects.order_by("id").values_list("type", flat=True)) == list(about)[:-1]
    assert Reporter.objects.count() == 1


def test_rows_that_cannot_be_deleted_do_not_keep_other_rows_and_are_tried_again_soon(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    task_hints.next_hint_round(most=1, least_life=1.0, most_life=1.0)
    failing, other = Stock(), Stock()
    for stock in (failing, other):
        _old_letters(stock, 3)
    delete = retention.delete_letters

    def fails(dlq: int, *, history: float, limit: int, after: ExpiredRow | None) -> list[ExpiredRow]:
        if dlq == failing.dlq.pk:
            raise DatabaseError("deadlock detected")
        return delete(dlq, history=history, limit=limit, after=after)

    monkeypatch.setattr(retention, "delete_letters", fails)
    with pytest.raises(StepsFailed, match=r"^Some rows past their retention could not be deleted\."):
        _purge_in(99)
    assert (_left(failing), _left(other)) == (3, 0)
    assert [entry.message for entry in caplog.records if entry.exc_info] == [
        "Rows past their retention could not be deleted. The next purge tries again."
    ]
    clock.advance(100)
    assert task_hints.claim_if_due("purge", every=purge.PURGE_EVERY)


def test_after_a_purge_that_did_not_end_the_next_begins_soon(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    task_hints.next_hint_round(most=1, least_life=1.0, most_life=1.0)
    monkeypatch.setattr(purge, "_steps", Mock(side_effect=SystemExit))
    with suppress(SystemExit):
        purge.purge_expired(conf=current(), seconds=60.0)
    due = []
    for seconds in (100, 21):
        clock.advance(seconds)
        due.append(task_hints.claim_if_due("purge", every=purge.PURGE_EVERY))
    assert due == [False, True]
