"""A plan gives letters their places and enlists whole lanes; a limit takes the first letters of a lane."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from unittest.mock import Mock

import pytest

from reprocessing.models import DeadLetterQueue, Lane, Letter, Run
from reprocessing.pipeline.parking_lot import act_on_parked
from reprocessing.store.ordering import lanes
from reprocessing.store.runs import enlistment, plans, run_transitions
from reprocessing.store.runs.plans import RunRequest
from tests.reprocessing.pipeline.bench import KEYED, Clock, Killed, Workbench
from tests.reprocessing.pipeline.benches import bodies_sent, bury_keyed

pytestmark = pytest.mark.django_db(transaction=True)

BY: dict[str, Any] = {"by": "anna", "reason": "the shop is up"}


@pytest.fixture
def bench() -> Workbench:
    return Workbench(fields=KEYED)


def _redrive(bench: Workbench, *letters: str) -> None:
    bury_keyed(bench, *letters)
    bench.ready()
    bench.replay()


def test_what_arrived_in_the_wrong_order_goes_in_the_right_one(bench: Workbench) -> None:
    bury_keyed(bench, "a10", "a9", "b2", "a1")
    bench.capture()
    _redrive(bench, "b1", "a2")
    assert [body for body in bodies_sent() if body[0] == "a"] == ["a1", "a2", "a9", "a10"]
    assert [body for body in bodies_sent() if body[0] == "b"] == ["b1", "b2"]


def test_enlisting_is_all_or_nothing(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    bury_keyed(bench, "a1", "b1")
    bench.capture()
    with monkeypatch.context() as patch:
        patch.setattr(enlistment._STEPS, "park", "SELECT 1 / 0 AS n")
        with pytest.raises(Exception, match="division by zero"):
            bench.enlist()
    assert (set(bench.states().values()), Lane.objects.count()) == ({"captured"}, 0)
    assert set(Letter.objects.values_list("run", flat=True)) == {None}


@pytest.mark.soak
def test_a_fresh_lane_of_a_key_keeps_quiet_and_a_single_one_does_not() -> None:
    keyed, keyless = Workbench(fields={**KEYED, "new_key_delay": 30}), Workbench(fields={"new_key_delay": 30})
    bury_keyed(keyed, "a1")
    keyless.bury("letter")
    keyed.ready()
    keyless.ready()
    due = keyed.lane().due_at
    assert due is not None
    assert due == keyed.letter().captured_at + timedelta(seconds=30)
    assert keyless.replay().taken == 1
    assert keyed.states() == {"a1": "waiting"}


@pytest.mark.soak
def test_a_stale_letter_is_parked_and_a_person_s_release_sends_it_once(bench: Workbench) -> None:
    _redrive(bench, "a2")
    _redrive(bench, "a1", "a3")
    assert bench.states() == {"a1": "parked", "a2": "delivered", "a3": "delivered"}
    assert bench.letter(state="parked").reason == "stale"
    act_on_parked.release([bench.letter(state="parked").pk], by="anna", reason="it is needed")
    bench.replay()
    assert (bench.states()["a1"], bodies_sent()) == ("delivered", ["a2", "a3", "a1"])


@pytest.mark.soak
def test_what_is_sent_late_by_a_person_s_release_makes_no_later_letter_fresh_again(bench: Workbench) -> None:
    _redrive(bench, "a3")
    for late in ("a1", "a2"):
        _redrive(bench, late)
        assert bench.states()[late] == "parked"
        act_on_parked.release([bench.letter(state="parked").pk], by="anna", reason="it is needed")
        bench.replay()
    assert bodies_sent() == ["a3", "a1", "a2"]


def test_a_stale_letter_that_earlier_tools_have_tried_is_parked_all_the_same(bench: Workbench) -> None:
    _redrive(bench, "a2")
    bench.redrive("a1", key="a", n="1", redrive_attempt="1")
    assert bench.states() == {"a1": "parked", "a2": "delivered"}
    assert bench.letter(state="parked").reason == "stale"


def test_what_perhaps_went_out_makes_an_earlier_letter_stale(bench: Workbench, clock: Clock) -> None:
    bury_keyed(bench, "a2")
    bench.ready()
    bench.replay_and_die(sent=True)
    bury_keyed(bench, "a1")
    bench.ready()
    clock.advance(9)
    bench.replay()
    assert bench.states() == {"a1": "parked", "a2": "delivered"}


@pytest.mark.soak
def test_a_letter_that_comes_back_goes_before_the_later_ones_that_wait(bench: Workbench) -> None:
    _redrive(bench, "a1")
    (sent,) = bench.delivered()
    bury_keyed(bench, "a2")
    bench.come_back(sent)
    bench.ready()
    bench.replay()
    assert bodies_sent() == ["a1", "a1", "a2"]


def test_what_came_back_to_a_run_that_has_ended_goes_along_with_the_next(bench: Workbench) -> None:
    bury_keyed(bench, "a1")
    run = bench.ready()
    bench.replay()
    (sent,) = bench.delivered()
    Run.objects.filter(pk=run.pk).update(state="finished", finished_at=lanes.database_now())
    bench.take_back(sent)
    assert bench.replay().taken == 0
    bench.enlist()
    assert bench.replay().taken == 1


def test_a_lane_does_not_wait_for_a_plan_whose_start_died(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    bury_keyed(bench, "a1")
    run_transitions.abort(bench.ready(), **BY, stop_dlq=False)
    heir = plans.create_plan(bench.dlq, RunRequest("heir", "anna"))
    plans.select_letters(heir.pk, **BY)
    with monkeypatch.context() as patch:
        patch.setattr(run_transitions, "move_run", Mock(side_effect=Killed))
        with pytest.raises(Killed):
            run_transitions.start(Run.objects.get(pk=heir.pk), **BY)
    assert bench.letter().run_id == heir.pk
    DeadLetterQueue.objects.filter(pk=bench.dlq.pk).update(mode="automatic")
    bury_keyed(bench, "a2")
    bench.capture()
    bench.replay()
    assert (bodies_sent(), bench.states()) == (["a1", "a2"], {"a1": "delivered", "a2": "delivered"})
