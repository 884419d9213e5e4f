"""An earlier letter of a lane waits again while a later one is with the target: the lane waits for that one."""

from __future__ import annotations

import pytest

from reprocessing.models import DeadLetter
from reprocessing.pipeline.parking_lot import act_on_parked
from tests.reprocessing.pipeline.bench import Workbench

pytestmark = pytest.mark.django_db(transaction=True)


def _a_later_one_is_with_the_target() -> tuple[Workbench, int]:
    bench = Workbench(fields={"ordering_key": "attribute:key", "sequence": "attribute:n", "max_attempts": 1})
    bench.judge_by_absence(window=0)
    for number in (1, 2):
        bench.bury(f"{number}", key="account", n=f"{number}")
    bench.ready()
    bench.replay()
    (first,) = bench.delivered()
    bench.come_back(first)
    bench.capture()
    parked = DeadLetter.objects.get(state="parked")
    bench.replay()
    assert bench.states() == {"1": "parked", "2": "awaiting"}
    return bench, parked.pk


def test_a_letter_released_before_one_that_is_under_way_waits_for_its_outcome() -> None:
    bench, parked = _a_later_one_is_with_the_target()
    act_on_parked.release([parked], by="anna", reason="mended")
    assert bench.lane().phase == "awaiting"
    assert bench.replay().taken == 0
    bench.delivered()
    bench.promote()
    bench.capture()
    assert bench.promote() == 1
    assert (bench.states()["2"], bench.lane().phase) == ("delivered", "ready")
    assert bench.replay().taken == 1


def test_it_holds_up_nobody_on_other_lanes() -> None:
    bench, parked = _a_later_one_is_with_the_target()
    bench.bury("of another account", key="other", n="1")
    bench.capture()
    bench.enlist()
    act_on_parked.release([parked], by="anna", reason="mended")
    assert bench.replay().taken == 1
