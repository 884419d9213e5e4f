"""A run is moved by compare-and-set, each time with its review; a plan has all of its letters or none."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable
from typing import Any

import pytest

from reprocessing.domain.runs.selection import ALL, Selection
from reprocessing.models import DeadLetter, DeadLetterQueue, Lane, Review, Run, Wave
from reprocessing.store import rows
from reprocessing.store.runs import (
    enlistment,
    late_arrivals,
    leftover_lanes,
    plans,
    progress,
    run_transitions,
    selection,
)
from reprocessing.store.runs.plans import Asked
from reprocessing.store.runs.run_transitions import Moved
from reprocessing.store.safety import stops
from tests.race.abreast import together
from tests.reprocessing.pipeline.bench import Clock
from tests.reprocessing.store.stock import NOW, Stock

pytestmark = pytest.mark.django_db(transaction=True)

BY: dict[str, Any] = {"by": "ann", "reason": "the shop is up"}


@pytest.fixture
def stock() -> Stock:
    """A dlq with two captured letters of one lane, and no run."""
    stock = Stock()
    DeadLetter.objects.all().update(state="delivered", finished_at=NOW, run=None)
    Lane.objects.update(run=None)
    Run.objects.all().delete()
    for number in "12":
        capture(stock, number)
    return stock


def capture(stock: Stock, number: str) -> None:
    stock.another_letter(
        message_id=number, state="captured", lane=None, run=None, key_hash=b"a", sequence=number, single=False
    )


def planned(
    stock: Stock, *, name: str = "", wish: Selection = ALL, named: bool = True, in_waves: bool | None = None
) -> Run:
    run = plans.plan(stock.dlq, Asked(name or uuid.uuid4().hex, "ann", wish, named=named, in_waves=in_waves))
    plans.select(run.pk, **BY)
    run.refresh_from_db()
    return run


def started(stock: Stock) -> Run:
    run = planned(stock)
    run_transitions.start(run, **BY)
    run.refresh_from_db()
    return run


def of(run: Run) -> list[tuple[str, str]]:
    """The state of each letter of a run."""
    return sorted(DeadLetter.objects.filter(run=run).values_list("message_id", "state"))


def acts(run: Run) -> list[tuple[str, str, str, object, object]]:
    found = Review.objects.filter(run=run).order_by("id")
    return [(one.act, one.by, one.reason, one.before.get("state"), one.after.get("state")) for one in found]


def test_a_plan_selects_and_its_start_enlists_what_was_selected_and_nothing_that_came_later(stock: Stock) -> None:
    run = planned(stock)
    assert (run.state, run.selected, run.behind, of(run)) == ("planned", 2, 0, [("1", "captured"), ("2", "captured")])
    capture(stock, "3")
    run_transitions.start(run, **BY)
    run.refresh_from_db()
    assert (run.state, of(run)) == ("running", [("1", "waiting"), ("2", "waiting")])
    assert [act for act, *_ in acts(run)] == ["planned", "started"]
    assert late_arrivals.since(run.pk) == 0


def test_what_arrives_after_a_plan_is_counted(stock: Stock) -> None:
    run = planned(stock)
    assert late_arrivals.since(run.pk) == 0
    capture(stock, "3")
    assert late_arrivals.since(run.pk) == 1


def test_planning_again_changes_nothing(stock: Stock) -> None:
    run = planned(stock)
    capture(stock, "3")
    assert plans.select(run.pk, **BY) is None
    assert len(of(run)) == 2


def test_whoever_dies_while_selecting_leaves_nothing_selected_and_the_next_one_finishes_it(
    stock: Stock, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = plans.plan(stock.dlq, Asked("monday", "ann"))
    with monkeypatch.context() as patch:
        patch.setattr(plans, "_SELECTED", "SELECT 1 / 0")
        with pytest.raises(Exception, match="division by zero"):
            plans.select(run.pk, **BY)
    run.refresh_from_db()
    assert (run.selected, of(run)) == (None, [])
    again = planned(stock, name="monday")
    assert (again.pk, again.selected, len(of(run))) == (run.pk, 2, 2)


def test_a_plan_without_an_id_is_given_up_by_the_next_and_one_with_an_id_is_kept(stock: Stock) -> None:
    named = planned(stock, wish=Selection(message_ids=("1",)))
    unnamed = planned(stock, named=False)
    following = planned(stock)
    assert (of(named), of(unnamed), of(following)) == ([("1", "captured")], [], [])
    unnamed.refresh_from_db()
    assert (unnamed.state, unnamed.why) == ("aborted", "The next plan of its dlq took its place.")
    assert (following.selected, following.behind) == (0, 1)  # behind the letter of the plan that was kept


def test_nobody_else_enlists_letters_of_a_plan(stock: Stock) -> None:
    run = planned(stock)
    other = Run.objects.create(name="other", dlq=stock.dlq, state="running")
    assert selection.select(stock.dlq.pk, other.pk, ALL).selected == 0
    assert enlistment.enlist(stock.dlq.pk, other.pk).letters == 0
    assert len(of(run)) == 2


def test_a_plan_is_started_once(stock: Stock) -> None:
    run = planned(stock)
    done = together([lambda: run_transitions.start(run, **BY)] * 4)
    assert [one.letters for one in done if one] == [2]
    assert [act for act, *_ in acts(run)] == ["planned", "started"]


def test_a_plan_that_nobody_starts_is_given_up_after_a_day_and_said_so(
    stock: Stock, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    run = planned(stock)
    clock.advance(86_300)
    assert plans.sweep() == 0
    clock.advance(200)
    with caplog.at_level(logging.WARNING):
        assert plans.sweep() == 1
    run.refresh_from_db()
    assert (run.state, run.stopped_by, of(run)) == ("aborted", "the service", [])
    assert f"The plan {run.name} was given up: nobody started it within a day." in caplog.text
    assert DeadLetter.objects.filter(state="captured", run=None).count() == 2


def test_a_plan_that_nobody_was_told_of_is_forgotten(stock: Stock) -> None:
    run = planned(stock)
    plans.forget(run.pk)
    assert (Run.objects.count(), DeadLetter.objects.filter(state="captured", run=None).count()) == (0, 2)
    kept = started(stock)
    plans.forget(kept.pk)
    assert len(of(kept)) == 2


def test_a_run_is_paused_and_resumed_and_each_time_it_is_written_down_who_and_why(stock: Stock) -> None:
    run = started(stock)
    assert run_transitions.pause(run.pk, by="ben", reason="lunch") == Moved("running", "", "")
    run.refresh_from_db()
    assert (run.state, run.stopped_by, run.why) == ("paused", "ben", "lunch")
    assert run_transitions.resume(run.pk, **BY) == Moved("paused", "ben", "lunch")
    run.refresh_from_db()
    assert (run.state, run.stopped_by, run.why) == ("running", "", "")
    assert acts(run)[-2:] == [
        ("paused", "ben", "lunch", "running", "paused"), ("resumed", *BY.values(), "paused", "running"),
    ]  # fmt: skip
    assert Review.objects.filter(run=run).latest("id").before == {"state": "paused", "by": "ben", "why": "lunch"}


Deed = Callable[[Run], object]
DEEDS: dict[str, tuple[Deed, set[str]]] = {
    "start": (lambda run: run_transitions.start(run, **BY), {"planned"}),
    "pause": (lambda run: run_transitions.pause(run.pk, **BY), {"running"}),
    "resume": (lambda run: run_transitions.resume(run.pk, **BY), {"paused"}),
    "go_on": (lambda run: run_transitions.go_on(run.pk, **BY), {"finished"}),
    "abort": (lambda run: run_transitions.abort(run, **BY, stop_dlq=True), {"planned", "running", "paused"}),
}


@pytest.mark.parametrize("state", ["planned", "running", "paused", "aborted", "finished"])
@pytest.mark.parametrize("deed", DEEDS)
def test_out_of_another_state_nothing_is_done_and_nothing_written(stock: Stock, deed: str, state: str) -> None:
    run = started(stock)
    Run.objects.filter(pk=run.pk).update(state=state, stopped_by="s", why="w", finished_at=NOW)
    act, out_of = DEEDS[deed]
    assert bool(act(run)) == (state in out_of)
    changed = Run.objects.get(pk=run.pk).state != state
    assert (changed, Review.objects.filter(run=run).count()) == (state in out_of, 2 + (state in out_of))


def test_two_who_pause_a_run_at_once_pause_it_once(stock: Stock) -> None:
    run = started(stock)
    done = together([lambda: run_transitions.pause(run.pk, **BY)] * 4)
    assert sum(one is not None for one in done) == 1
    assert [act for act, *_ in acts(run)] == ["planned", "started", "paused"]


@pytest.mark.parametrize("stop", [True, False])
def test_an_aborted_run_keeps_its_letters_waiting_and_stops_its_dlq_unless_told_otherwise(
    stock: Stock, stop: bool
) -> None:
    run = started(stock)
    run_transitions.abort(run, **BY, stop_dlq=stop)
    run.refresh_from_db()
    assert (run.state, of(run)) == ("aborted", [("1", "waiting"), ("2", "waiting")])
    assert (stops.stopped(stock.dlq.pk) is not None) is stop


def test_a_plan_that_is_given_up_frees_its_letters_and_stops_nothing(stock: Stock) -> None:
    run = planned(stock)
    assert run_transitions.abort(run, **BY, stop_dlq=True) == Moved("planned", "", "")
    assert (of(run), stops.stopped(stock.dlq.pk)) == ([], None)


def test_what_an_aborted_run_left_goes_along_with_the_next(stock: Stock) -> None:
    run = started(stock)
    run_transitions.abort(run, **BY, stop_dlq=False)
    following = started(stock)
    assert (of(run), len(of(following))) == ([], 2)
    assert set(Lane.objects.exclude(pk=stock.lane.pk).values_list("run", flat=True)) == {following.pk}


def test_what_an_aborted_run_left_is_adopted_in_batches_before_the_next_begins(
    stock: Stock, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_transitions.abort(started(stock), **BY, stop_dlq=False)
    following, told = planned(stock), list[tuple[int, bool]]()
    monkeypatch.setattr(leftover_lanes, "BATCH", 1)
    whole = rows.whole

    def watched(work: Callable[[], Any]) -> Any:  # noqa: ANN401  whatever is done
        done = whole(work)
        told.append((len(of(following)), Run.objects.get(pk=following.pk).state == "running"))
        return done

    monkeypatch.setattr(rows, "whole", watched)
    run_transitions.start(following, **BY)
    assert told == [(1, False), (2, False), (2, False), (2, True)]
    assert set(Lane.objects.exclude(pk=stock.lane.pk).values_list("run", flat=True)) == {following.pk}


def test_only_a_plan_adopts_and_one_that_is_given_up_leaves_it_to_the_next(stock: Stock) -> None:
    aborted = started(stock)
    run_transitions.abort(aborted, **BY, stop_dlq=False)
    leftover_lanes.adopt(stock.dlq.pk, aborted.pk)
    given_up = planned(stock)
    leftover_lanes.adopt(stock.dlq.pk, given_up.pk)
    assert (len(of(aborted)), len(of(given_up))) == (0, 2)
    run_transitions.abort(given_up, **BY, stop_dlq=False)
    following = started(stock)
    assert (len(of(given_up)), len(of(following))) == (0, 2)


def test_what_a_plan_adopted_whose_start_died_goes_along_with_the_next(stock: Stock) -> None:
    run_transitions.abort(started(stock), **BY, stop_dlq=False)
    died = planned(stock)
    leftover_lanes.adopt(stock.dlq.pk, died.pk)
    following = started(stock)
    assert (len(of(died)), len(of(following))) == (0, 2)
    assert set(Lane.objects.exclude(pk=stock.lane.pk).values_list("run", flat=True)) == {following.pk}
    run_transitions.start(died, **BY)
    assert len(of(following)) == 2


def test_a_run_that_is_paused_takes_nothing_from_a_plan_that_is_being_started(stock: Stock) -> None:
    DeadLetterQueue.objects.update(mode="automatic")
    run_transitions.abort(started(stock), **BY, stop_dlq=False)
    being_started = planned(stock)
    leftover_lanes.adopt(stock.dlq.pk, being_started.pk)
    standing = Run.objects.create(
        name="standing", dlq=stock.dlq, kind="standing", state="paused", asked_by="beat", started_at=NOW,
        stopped_by="ann", why="the consumer is broken",
    )  # fmt: skip
    leftover_lanes.adopt(stock.dlq.pk, standing.pk)
    rows.whole(lambda: enlistment.enlist(stock.dlq.pk, standing.pk))
    assert (len(of(being_started)), len(of(standing))) == (2, 0)
    Run.objects.filter(pk=standing.pk).update(state="running", stopped_by="", why="")
    leftover_lanes.adopt(stock.dlq.pk, standing.pk)
    assert (len(of(being_started)), len(of(standing))) == (0, 2)


def test_two_plans_take_nothing_from_each_other_before_one_of_them_begins(stock: Stock) -> None:
    run_transitions.abort(started(stock), **BY, stop_dlq=False)
    first, second = planned(stock), planned(stock)
    for one in (first, second, first):
        leftover_lanes.adopt(stock.dlq.pk, one.pk)
    assert (len(of(first)), len(of(second))) == (2, 0)


def test_only_a_running_run_without_open_letters_is_finished(stock: Stock) -> None:
    run = started(stock)
    DeadLetter.objects.filter(run=run).update(state="delivered", finished_at=NOW)
    for state in ("planned", "paused", "aborted"):
        Run.objects.filter(pk=run.pk).update(state=state, stopped_by="s", why="w")
        assert progress.finish_runs() == 0
    Run.objects.filter(pk=run.pk).update(state="running")
    assert progress.finish_runs() == 1


def test_a_run_goes_in_waves_as_its_dlq_says_or_as_it_was_asked(stock: Stock) -> None:
    assert [planned(stock).waves, planned(stock, in_waves=False).waves] == [True, False]


def test_waves_begin_with_the_run_and_anew_when_it_is_resumed_and_end_with_it(stock: Stock) -> None:
    run = started(stock)
    run_transitions.pause(run.pk, **BY)
    run_transitions.resume(run.pk, **BY)
    assert list(Wave.objects.order_by("no").values_list("size", "touched")) == [(1, 0), (1, None)]
    run_transitions.abort(run, **BY, stop_dlq=False)
    assert list(Wave.objects.order_by("no").values_list("size", "touched")) == [(1, 0), (1, 0)]


def test_keys_that_changed_have_a_plan_select_anew(stock: Stock) -> None:
    run = planned(stock)
    enlistment.replan(stock.dlq.pk)
    run.refresh_from_db()
    assert (run.selected, of(run)) == (None, [])
    assert DeadLetter.objects.filter(state="captured", planned=False).count() == 2
