from __future__ import annotations

import random
from collections import Counter
from datetime import timedelta

import pytest
from django.db import transaction

from reprocessing.models import FailureGroup, HourlyCountDelta, Letter, LetterCount, LetterCountDelta
from reprocessing.store import rows
from reprocessing.store.maintenance import counters
from tests.race.abreast import elsewhere
from tests.reprocessing.pipeline.bench import Clock
from tests.reprocessing.store.stock import NOW, Stock

pytestmark = pytest.mark.django_db(transaction=True)


def _told() -> Counter[tuple[int, str, str, bool]]:
    return Counter(
        {(kind.dlq_id, kind.state, kind.reason, kind.presumed): kind.n for kind in counters.counts_by_state()}
    )


def _counted() -> Counter[tuple[int, str, str, bool]]:
    return Counter(Letter.objects.values_list("dlq_id", "state", "reason", "presumed"))


def _changed(letter: Letter, dice: random.Random) -> None:
    kind = dice.choice(["captured", "parked", "delivered", "presumed", "gone"])
    mine = Letter.objects.filter(pk=letter.pk)
    if kind == "gone":
        mine.delete()
    elif kind == "parked":
        mine.update(state="parked", reason=dice.choice(["stale", "expired"]), finished_at=NOW, presumed=False)
    elif kind == "captured":
        mine.update(state="captured", reason="", finished_at=None, presumed=False)
    else:
        mine.update(state="delivered", reason="", finished_at=NOW, presumed=kind == "presumed")


@pytest.mark.parametrize("seed", range(5))
def test_maintained_counts_equal_the_counts_of_letters(seed: int) -> None:
    dice, stocks = random.Random(seed), [Stock(), Stock()]
    letters = [dice.choice(stocks).another_letter() for _ in range(20)]
    for _ in range(60):
        _changed(dice.choice(letters), dice)
        if dice.random() < 0.2:
            counters.fold_deltas()
        if dice.random() < 0.1:
            with transaction.atomic():
                Letter.objects.filter(state="captured").update(attempts=1)
                transaction.set_rollback(True)
    assert _told() == _counted()


def test_one_statement_over_many_letters_writes_one_difference_of_each_kind() -> None:
    stock = Stock()
    for _ in range(9):
        stock.another_letter()
    counters.fold_deltas()
    assert (LetterCountDelta.objects.count(), HourlyCountDelta.objects.count()) == (0, 0)
    Letter.objects.filter(state="waiting").update(state="parked", reason="stale", finished_at=NOW)
    told = LetterCountDelta.objects.order_by("n").values_list("state", "n")
    assert list(told) == [("waiting", -10), ("parked", 10)]
    Letter.objects.update(assigned_to="ann")
    assert LetterCountDelta.objects.count() == 2


def test_a_group_s_letters_are_counted_by_state() -> None:
    stock = Stock()
    group = FailureGroup.objects.create(
        dlq=stock.dlq, fingerprint=b"f", cause="shape", title="t", first_at=NOW, last_at=NOW
    )
    for _ in range(3):
        stock.another_letter(group=group)
    stock.another_letter(group=group, state="delivered", finished_at=NOW)
    stock.another_letter()
    assert [(count.state, count.n) for count in counters.counts_in_groups([group.pk])] == [
        ("delivered", 1),
        ("waiting", 3),
    ]


def test_an_hour_counts_the_events_of_letters(clock: Clock) -> None:
    stock = Stock()
    letters = [stock.another_letter() for _ in range(3)]
    Letter.objects.filter(pk__in=[letter.pk for letter in letters]).update(state="delivered", finished_at=NOW)
    Letter.objects.filter(pk=letters[0].pk).update(state="captured", finished_at=None, epoch=1)
    told = {hour.what: hour.n for hour in counters.counts_by_hour(1)}
    assert told == {"captured": 4, "delivered": 3, "failed": 1}
    counters.fold_deltas()
    assert {hour.what: hour.n for hour in counters.counts_by_hour(1)} == told
    clock.advance(2 * 3_600)
    assert counters.counts_by_hour(1) == []
    assert counters.delete_old_hours(history=timedelta(hours=1).total_seconds()) == 3


def test_a_concurrent_fold_neither_waits_nor_counts_twice() -> None:
    stock = Stock()
    stock.another_letter()
    before = LetterCountDelta.objects.count()
    with elsewhere() as begin, transaction.atomic():
        assert rows.value(bool, counters._TURN, {})
        begin(counters.fold_deltas).result(20)
    assert LetterCountDelta.objects.count() == before > 0
    counters.fold_deltas()
    assert _told() == _counted()
    assert set(LetterCount.objects.values_list("n", flat=True)) == {2}
