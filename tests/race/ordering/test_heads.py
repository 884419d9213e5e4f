"""An earlier letter of a lane returns or is released while a later one is the lane's head, or was sent."""

from __future__ import annotations

import pytest

from reprocessing.models import Letter
from reprocessing.pipeline.parking_lot import act_on_parked
from reprocessing.store.ordering import lane_state, lanes
from reprocessing.store.ordering.lanes import LeasedLane
from reprocessing.store.replay.intent import IntendedSend
from tests.race.abreast import overtaken
from tests.race.letters import intend_head, of_one_key
from tests.reprocessing.pipeline.bench import Workbench

pytestmark = pytest.mark.django_db(transaction=True)


def _a_later_one_was_sent() -> tuple[Workbench, int]:
    bench = of_one_key(2, max_attempts=1)
    bench.judge_by_absence(window=0)
    bench.replay()
    bench.take_back(bench.delivered()[0])
    parked = Letter.objects.get(state="parked")
    bench.replay()
    assert bench.states() == {"0": "parked", "1": "awaiting"}
    return bench, parked.pk


def test_a_letter_released_before_one_that_was_sent_waits_for_its_outcome() -> None:
    bench, parked = _a_later_one_was_sent()
    act_on_parked.release([parked], by="anna", reason="mended")
    assert bench.lane().phase == "awaiting"
    assert bench.replay().taken == 0
    bench.delivered()
    bench.promote()
    bench.capture()
    assert bench.promote() == 1
    assert (bench.states()["1"], bench.lane().phase) == ("delivered", "ready")
    assert bench.replay().taken == 1


def test_a_released_letter_that_waits_holds_up_no_other_lane() -> None:
    bench, parked = _a_later_one_was_sent()
    bench.bury("of another account", key="other", n="1")
    bench.capture()
    bench.enlist()
    act_on_parked.release([parked], by="anna", reason="mended")
    assert bench.replay().taken == 1


def _a_later_one_is_the_head() -> tuple[Workbench, LeasedLane]:
    """The first letter was accepted, and its copy is in the DLQ; we have leased the lane for the second one."""
    bench = of_one_key(2)
    once = iter([False, True])
    bench.replay(stop=lambda: next(once))
    assert bench.states() == {"0": "delivered", "1": "waiting"}
    bench.come_back(bench.delivered()[0])
    (lane,) = lanes.lease("me", limit=1, lease=8)
    lane_state.advance([lane.lane_id], [lane.fence], keep=True, lease=8)
    return bench, lane


def _intend_the_second(lane: LeasedLane) -> list[IntendedSend]:
    return intend_head(lane, Letter.objects.latest("sequence").pk)


def test_an_earlier_letter_that_returned_meanwhile_goes_first() -> None:
    bench, lane = _a_later_one_is_the_head()
    bench.capture()
    assert (_intend_the_second(lane), bench.states()) == ([], {"0": "waiting", "1": "waiting"})


def test_an_earlier_letter_that_returns_at_the_same_moment_goes_first() -> None:
    bench, lane = _a_later_one_is_the_head()
    assert overtaken(lambda: _intend_the_second(lane), bench.capture) == []
    assert bench.states() == {"0": "waiting", "1": "waiting"}
