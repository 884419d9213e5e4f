"""Planning: places are given, whole lanes enlisted; a limit takes prefixes, and a later plan loses no order."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from reprocessing.models import Attempt, DeadLetter, DeadLetterQueue, Lane, Run
from reprocessing.pipeline.parking_lot import act_on_parked
from reprocessing.pipeline.runs import plan
from reprocessing.store.ordering import lanes
from reprocessing.store.runs import enlistment, plans, run_transitions
from reprocessing.store.runs.plans import Asked
from tests.reprocessing.pipeline.bench import Clock, Killed, Workbench

pytestmark = pytest.mark.django_db(transaction=True)

BY: dict[str, Any] = {"by": "anna", "reason": "the shop is up"}
KEYED: dict[str, Any] = {"ordering_key": "attribute:key", "sequence": "attribute:n"}


def _bury(bench: Workbench, *letters: str) -> None:
    """Letters named key and number: a1, b3."""
    for one in letters:
        bench.bury(one, key=one[0], n=one[1:])


def _sent() -> list[str]:
    bodies = Attempt.objects.order_by("id").values_list("letter__payload__body", flat=True)
    return [bytes(body).decode() for body in bodies]


def test_a_capture_alone_enlists_and_sends_nothing() -> None:
    bench = Workbench(fields=KEYED)
    _bury(bench, "a1")
    bench.capture()
    bench.replay()
    assert (bench.states(), Lane.objects.count(), bench.delivered()) == ({"a1": "captured"}, 0, [])


def test_what_arrived_in_the_wrong_order_goes_in_the_right_one() -> None:
    bench = Workbench(fields=KEYED)
    _bury(bench, "a10", "a9", "b2", "a1")
    bench.capture()
    _bury(bench, "b1", "a2")
    bench.ready()
    bench.replay()
    assert [one for one in _sent() if one[0] == "a"] == ["a1", "a2", "a9", "a10"]
    assert [one for one in _sent() if one[0] == "b"] == ["b1", "b2"]


def test_a_limit_takes_the_first_letters_of_a_lane_and_never_one_before_them() -> None:
    bench = Workbench(fields=KEYED)
    _bury(bench, "a3", "a1", "a2")
    bench.capture()
    bench.enlist(limit=2)
    assert bench.states() == {"a1": "waiting", "a2": "waiting", "a3": "captured"}
    bench.enlist()
    bench.replay()
    assert _sent() == ["a1", "a2", "a3"]


def test_a_limit_of_a_run_counts_over_all_lanes_whole_lanes_first() -> None:
    bench = Workbench(fields=KEYED)
    _bury(bench, "a2", "b1", "a1", "b2")
    bench.capture()
    bench.enlist(limit=3)
    states = bench.states()
    assert sorted(states.values()) == ["captured", "waiting", "waiting", "waiting"]
    whole, cut = ("a", "b") if states["a2"] == "waiting" else ("b", "a")
    assert (states[f"{whole}1"], states[f"{whole}2"], states[f"{cut}1"]) == ("waiting",) * 3


def test_a_letter_is_in_one_run() -> None:
    bench = Workbench(fields=KEYED)
    _bury(bench, "a1")
    first = bench.ready()
    second = bench.enlist()
    assert bench.letter().run_id == first.pk
    assert plan.enlist(bench.dlq, second).letters == 0


def test_enlisting_is_all_or_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Workbench(fields=KEYED)
    _bury(bench, "a1", "b1")
    bench.capture()
    with monkeypatch.context() as patch:
        patch.setattr(enlistment, "_OBJECT", "SELECT 1 / 0 AS n")
        with pytest.raises(Exception, match="division by zero"):
            bench.enlist()
    assert (set(bench.states().values()), Lane.objects.count()) == ({"captured"}, 0)
    assert set(DeadLetter.objects.values_list("run", flat=True)) == {None}


def test_an_objection_parks_only_when_a_run_takes_the_letter() -> None:
    bench = Workbench(fields=KEYED)
    bench.bury("keyless")
    _bury(bench, "a1")
    bench.capture()
    assert (bench.states()["keyless"], bench.letter(payload__body=b"keyless").objection) == (
        "captured",
        "no_ordering_key",
    )
    bench.enlist()
    bench.replay()
    assert bench.states() == {"keyless": "parked", "a1": "delivered"}


def test_a_letter_without_a_key_gets_a_lane_of_its_own_where_the_dlq_says_so() -> None:
    bench = Workbench(fields={**KEYED, "missing_key": "lane"})
    for number in range(3):
        bench.bury(f"keyless {number}")
    bench.ready()
    assert list(Lane.objects.values_list("single", flat=True)) == [True] * 3
    bench.replay()
    assert set(bench.states().values()) == {"delivered"}


def test_a_letter_too_large_for_its_target_is_parked() -> None:
    bench = Workbench(target_fields={"size_limit": 100})
    bench.bury("x" * 101)
    bench.bury("y")
    bench.ready()
    bench.replay()
    assert bench.states() == {"x" * 101: "parked", "y": "delivered"}
    assert bench.letter(state="parked").reason == "too_large"


def test_a_fresh_lane_of_a_key_keeps_quiet_and_a_single_one_does_not() -> None:
    keyed, keyless = Workbench(fields={**KEYED, "quiet_for": 30}), Workbench(fields={"quiet_for": 30})
    _bury(keyed, "a1")
    keyless.bury("letter")
    keyed.ready()
    keyless.ready()
    due = keyed.lane().due_at
    assert due is not None
    assert due == keyed.letter().captured_at + timedelta(seconds=30)
    assert keyless.replay().taken == 1
    assert keyed.states() == {"a1": "waiting"}


def test_a_stale_letter_is_parked_and_a_person_s_release_sends_it_once() -> None:
    bench = Workbench(fields=KEYED)
    _bury(bench, "a2")
    bench.ready()
    bench.replay()
    _bury(bench, "a1", "a3")
    bench.ready()
    bench.replay()
    assert bench.states() == {"a1": "parked", "a2": "delivered", "a3": "delivered"}
    assert bench.letter(state="parked").reason == "stale"
    act_on_parked.release([bench.letter(state="parked").pk], by="anna", reason="it is needed")
    bench.replay()
    assert (bench.states()["a1"], _sent()) == ("delivered", ["a2", "a3", "a1"])


def test_what_is_sent_late_by_a_person_s_release_makes_no_later_letter_fresh_again() -> None:
    bench = Workbench(fields=KEYED)
    _bury(bench, "a3")
    bench.ready()
    bench.replay()
    for late in ("a1", "a2"):
        _bury(bench, late)
        bench.ready()
        bench.replay()
        assert bench.states()[late] == "parked"
        act_on_parked.release([bench.letter(state="parked").pk], by="anna", reason="it is needed")
        bench.replay()
    assert _sent() == ["a3", "a1", "a2"]


def test_a_stale_letter_that_earlier_tools_have_tried_is_parked_all_the_same() -> None:
    bench = Workbench(fields=KEYED)
    _bury(bench, "a2")
    bench.ready()
    bench.replay()
    bench.bury("a1", key="a", n="1", redrive_attempt="1")
    bench.ready()
    bench.replay()
    assert bench.states() == {"a1": "parked", "a2": "delivered"}
    assert bench.letter(state="parked").reason == "stale"


def test_a_stale_letter_is_delivered_late_where_the_dlq_says_so() -> None:
    bench = Workbench(fields={**KEYED, "stale": "deliver"})
    _bury(bench, "a2")
    bench.ready()
    bench.replay()
    _bury(bench, "a1")
    bench.ready()
    bench.replay()
    assert _sent() == ["a2", "a1"]


def test_what_perhaps_went_out_makes_an_earlier_letter_stale(clock: Clock) -> None:
    bench = Workbench(fields=KEYED)
    _bury(bench, "a2")
    bench.ready()
    bench.replay_and_die(sent=True)
    _bury(bench, "a1")
    bench.ready()
    clock.advance(9)
    bench.replay()
    assert bench.states() == {"a1": "parked", "a2": "delivered"}


def test_a_letter_that_comes_back_goes_before_the_later_ones_that_wait() -> None:
    bench = Workbench(fields=KEYED)
    _bury(bench, "a1")
    bench.ready()
    bench.replay()
    (sent,) = bench.delivered()
    _bury(bench, "a2")
    bench.come_back(sent)
    bench.ready()
    bench.replay()
    assert _sent() == ["a1", "a1", "a2"]


def test_what_came_back_to_a_run_that_has_ended_goes_along_with_the_next() -> None:
    bench = Workbench(fields=KEYED)
    _bury(bench, "a1")
    run = bench.ready()
    bench.replay()
    (sent,) = bench.delivered()
    Run.objects.filter(pk=run.pk).update(state="finished", finished_at=lanes.clock())
    bench.come_back(sent)
    bench.capture()
    assert bench.replay().taken == 0
    bench.enlist()
    assert bench.replay().taken == 1


def test_a_lane_does_not_wait_for_a_plan_that_died_while_it_was_started(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Workbench(fields=KEYED)
    _bury(bench, "a1")
    run_transitions.abort(bench.ready(), **BY, stop_dlq=False)
    heir = plans.plan(bench.dlq, Asked("heir", "anna"))
    plans.select(heir.pk, **BY)
    with monkeypatch.context() as patch:
        patch.setattr(run_transitions, "move", _killed)
        with pytest.raises(Killed):
            run_transitions.start(Run.objects.get(pk=heir.pk), **BY)
    assert bench.letter().run_id == heir.pk
    DeadLetterQueue.objects.filter(pk=bench.dlq.pk).update(mode="automatic")
    _bury(bench, "a2")
    bench.capture()
    bench.replay()
    assert (_sent(), bench.states()) == (["a1", "a2"], {"a1": "delivered", "a2": "delivered"})


def _killed(*_: object, **__: object) -> None:
    raise Killed
