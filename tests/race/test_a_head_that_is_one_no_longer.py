"""A later letter of a lane waits for its target's rate while an earlier one comes back: the earlier one goes first."""

from __future__ import annotations

import pytest

from reprocessing.models import DeadLetter
from reprocessing.store.ordering import lanes
from reprocessing.store.ordering.lanes import Leased
from reprocessing.store.replay.intent import Intended, intend
from tests.race.abreast import elsewhere, holding_lanes, waits_for_us
from tests.reprocessing.pipeline.bench import Workbench

pytestmark = pytest.mark.django_db(transaction=True)


def _a_later_one_is_about_to_go() -> tuple[Workbench, Leased]:
    """The first letter was taken, which is all that its lane waits for; the second one is the head of our lane."""
    bench = Workbench(fields={"ordering_key": "attribute:key", "sequence": "attribute:n"})
    for number in (1, 2):
        bench.bury(f"{number}", key="account", n=f"{number}")
    bench.ready()
    once = iter([False, True])
    bench.replay(stop=lambda: next(once))
    assert bench.states() == {"1": "delivered", "2": "waiting"}
    bench.come_back(bench.delivered()[0])
    (lane,) = lanes.lease("me", limit=1, lease=8)
    lanes.advance([lane.lane_id], [lane.fence], keep=True, lease=8)
    return bench, lane


def _intend_the_second(lane: Leased) -> list[Intended]:
    second = DeadLetter.objects.latest("sequence").pk
    return intend([lane.lane_id], [lane.fence], [second], margin=2, hold=8)


def test_what_came_back_in_the_meantime_goes_first() -> None:
    bench, lane = _a_later_one_is_about_to_go()
    bench.capture()
    assert (_intend_the_second(lane), bench.states()) == ([], {"1": "waiting", "2": "waiting"})


def test_what_comes_back_at_the_same_moment_goes_first() -> None:
    bench, lane = _a_later_one_is_about_to_go()
    with elsewhere() as begin:
        with holding_lanes():
            intending = begin(lambda: _intend_the_second(lane))
            waits_for_us()
            bench.capture()
        assert (intending.result(20), bench.states()) == ([], {"1": "waiting", "2": "waiting"})


def test_a_head_that_nothing_came_before_goes() -> None:
    _, lane = _a_later_one_is_about_to_go()
    assert [one.body for one in _intend_the_second(lane)] == [b"2"]
