"""One idempotency key, several letters, several workers: only one letter is sent."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reprocessing.models import Attempt, Claim, Letter
from reprocessing.store.ordering import lanes
from reprocessing.store.replay.intent import intend
from tests.race.abreast import together
from tests.race.letters import intend_head
from tests.reprocessing.pipeline.bench import Clock, Workbench

pytestmark = pytest.mark.django_db(transaction=True)


def _equal_letters(count: int) -> Workbench:
    bench = Workbench(fields={"idempotency_key": "attribute:idem"})
    for _ in range(count):
        bench.bury("same", idem="k")
    bench.ready()
    return bench


def test_of_several_workers_one_wins_the_key() -> None:
    _equal_letters(4)
    leased = lanes.lease("all", limit=4, lease=8)
    won = together([lambda lane=lane: intend_head(lane) for lane in leased])  # type: ignore[misc]
    assert sorted(len(some) for some in won) == [0, 0, 0, 1]
    assert Claim.objects.get().letter_id == Letter.objects.get(state="sending").pk


def test_of_one_batch_one_wins_the_key() -> None:
    _equal_letters(3)
    leased = lanes.lease("all", limit=3, lease=8)
    letters = [Letter.objects.get(lane=lane.lane_id).pk for lane in leased]
    won = intend([lane.lane_id for lane in leased], [lane.fence for lane in leased], letters, margin=2, hold=8)
    assert len(won) == 1


@pytest.mark.parametrize(("state", "sent"), [("held", 1), ("delivered", 1), ("discarded", 1), ("free", 2)])
def test_a_key_of_another_letter_is_won_only_when_it_is_free(state: str, sent: int) -> None:
    _equal_letters(2)
    first, second = lanes.lease("all", limit=2, lease=8)
    assert len(intend_head(first)) == 1
    Claim.objects.update(state=state)
    intend_head(second)
    assert Attempt.objects.count() == sent


def test_a_released_letter_does_not_win_a_discarded_key_while_a_copy_of_the_other_may_be_there(clock: Clock) -> None:
    """The gate had let it go before the other one was discarded."""
    _equal_letters(2)
    first, second = lanes.lease("all", limit=2, lease=30)
    intend_head(first)
    Claim.objects.update(state="discarded", until=lanes.database_now() + timedelta(seconds=10))
    Letter.objects.update(released_by="ann")
    assert intend_head(second) == []
    clock.advance(10)
    assert len(intend_head(second)) == 1


def test_simultaneous_replays_deliver_one_of_several_equal_letters(clock: Clock) -> None:
    bench = _equal_letters(6)
    together([bench.replay] * 3)
    clock.advance(9)
    bench.replay()
    assert len(bench.delivered()) == 1
    assert sorted(Letter.objects.values_list("state", "duplicate_of__state")) == [
        ("delivered", None), *[("duplicate", "delivered")] * 5,
    ]  # fmt: skip
    assert bench.left() == 0
