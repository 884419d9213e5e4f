"""One idempotency key, several letters, several workers: one of them is under way."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reprocessing.models import Attempt, Claim, DeadLetter
from reprocessing.store.ordering import lanes
from reprocessing.store.replay.intent import Intended, intend
from tests.race.abreast import together
from tests.reprocessing.pipeline.bench import Clock, Workbench

pytestmark = pytest.mark.django_db(transaction=True)


def _twins(count: int) -> Workbench:
    bench = Workbench(fields={"idempotency_key": "attribute:idem"})
    for _ in range(count):
        bench.bury("same", idem="k")
    bench.ready()
    return bench


def _intent(lane: lanes.Leased) -> list[Intended]:
    letter = DeadLetter.objects.get(lane=lane.lane_id).pk
    return intend([lane.lane_id], [lane.fence], [letter], margin=2, hold=8)


def test_of_several_workers_one_wins_the_key() -> None:
    _twins(4)
    leased = lanes.lease("all", limit=4, lease=8)
    won = together([lambda lane=lane: _intent(lane) for lane in leased])  # type: ignore[misc]
    assert sorted(len(one) for one in won) == [0, 0, 0, 1]
    assert Claim.objects.get().letter_id == DeadLetter.objects.get(state="sending").pk


def test_of_one_batch_one_wins_the_key() -> None:
    _twins(3)
    leased = lanes.lease("all", limit=3, lease=8)
    letters = [DeadLetter.objects.get(lane=one.lane_id).pk for one in leased]
    won = intend([one.lane_id for one in leased], [one.fence for one in leased], letters, margin=2, hold=8)
    assert len(won) == 1


@pytest.mark.parametrize("state", ["held", "delivered", "discarded"])
def test_a_key_that_is_another_letter_s_is_not_won(state: str) -> None:
    _twins(2)
    first, second = lanes.lease("all", limit=2, lease=8)
    assert len(_intent(first)) == 1
    Claim.objects.update(state=state)
    assert _intent(second) == []
    assert Attempt.objects.count() == 1


def test_a_released_letter_does_not_win_a_discarded_key_while_a_copy_of_the_other_may_be_there(clock: Clock) -> None:
    """The gate had it go before the other one was discarded."""
    _twins(2)
    first, second = lanes.lease("all", limit=2, lease=30)
    _intent(first)
    Claim.objects.update(state="discarded", until=lanes.clock() + timedelta(seconds=10))
    DeadLetter.objects.update(released_by="ann")
    assert _intent(second) == []
    clock.advance(10)
    assert len(_intent(second)) == 1


def test_a_key_that_was_freed_is_won() -> None:
    _twins(2)
    first, second = lanes.lease("all", limit=2, lease=8)
    _intent(first)
    Claim.objects.update(state="free")
    assert len(_intent(second)) == 1


def test_twins_abreast_are_delivered_once(clock: Clock) -> None:
    bench = _twins(6)
    together([bench.replay] * 3)
    clock.advance(9)
    bench.replay()
    assert len(bench.delivered()) == 1
    assert sorted(DeadLetter.objects.values_list("state", flat=True)) == ["delivered", *["duplicate"] * 5]
