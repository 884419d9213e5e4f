"""A run is moved by compare-and-set, each time with an audit log entry; a plan has all of its letters or none."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable
from typing import Any

import pytest

from reprocessing.domain.runs.selection import ALL_LETTERS, Selection
from reprocessing.models import AuditEntry, DeadLetterQueue, Lane, Letter, Run, Wave
from reprocessing.store import rows
from reprocessing.store.ordering import placement
from reprocessing.store.runs import (
    arrived_since,
    enlistment,
    leftover_lanes,
    plans,
    progress,
    run_transitions,
    selection,
)
from reprocessing.store.runs.plans import RunRequest
from reprocessing.store.runs.run_transitions import RunBefore
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
    Letter.objects.all().update(state="delivered", finished_at=NOW, run=None)
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
    stock: Stock, *, name: str = "", wish: Selection = ALL_LETTERS, named: bool = True, in_waves: bool | None = None
) -> Run:
    run = plans.create_plan(
        stock.dlq, RunRequest(name or uuid.uuid4().hex, "ann", wish, named=named, in_waves=in_waves)
    )
    plans.select_letters(run.pk, **BY)
    run.refresh_from_db()
    return run


def aborted(stock: Stock) -> Run:
    run = started(stock)
    run_transitions.abort(run, **BY, stop_dlq=False)
    return run


def started(stock: Stock) -> Run:
    run = planned(stock)
    run_transitions.start(run, **BY)
    run.refresh_from_db()
    return run


def stop(run: Run) -> tuple[str, str, str]:
    return Run.objects.values_list("state", "stopped_by", "why").get(pk=run.pk)


def lanes_runs(stock: Stock) -> set[int | None]:
    return set(Lane.objects.exclude(pk=stock.lane.pk).values_list("run", flat=True))


def of(run: Run) -> list[tuple[str, str]]:
    return sorted(Letter.objects.filter(run=run).values_list("message_id", "state"))


def acts(run: Run) -> list[tuple[str, str, str, object, object]]:
    found = AuditEntry.objects.filter(run=run).order_by("id")
    return [(entry.act, entry.by, entry.reason, entry.before.get("state"), entry.after.get("state")) for entry in found]


def test_a_plan_selects_letters_and_its_start_enlists_only_these(stock: Stock) -> None:
    run = planned(stock)
    assert (run.state, run.selected, run.behind, of(run)) == ("planned", 2, 0, [("1", "captured"), ("2", "captured")])
    assert arrived_since.arrived_since_start(run.pk).n == 0
    capture(stock, "3")
    assert arrived_since.arrived_since_start(run.pk).n == 1
    run_transitions.start(run, **BY)
    assert (stop(run)[0], of(run)) == ("running", [("1", "waiting"), ("2", "waiting")])
    assert [act for act, *_ in acts(run)] == ["planned", "started"]
    assert arrived_since.arrived_since_start(run.pk).n == 0


def test_planning_again_changes_nothing(stock: Stock) -> None:
    run = planned(stock)
    capture(stock, "3")
    assert plans.select_letters(run.pk, **BY) is None
    assert len(of(run)) == 2


def test_a_crash_while_selecting_selects_nothing_and_planning_again_finishes(
    stock: Stock, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = plans.create_plan(stock.dlq, RunRequest("monday", "ann"))
    with monkeypatch.context() as patch:
        patch.setattr(plans, "_SELECTED", "SELECT 1 / 0")
        with pytest.raises(Exception, match="division by zero"):
            plans.select_letters(run.pk, **BY)
    run.refresh_from_db()
    assert (run.selected, of(run)) == (None, [])
    again = planned(stock, name="monday")
    assert (again.pk, again.selected, len(of(run))) == (run.pk, 2, 2)


def test_the_next_plan_replaces_only_a_plan_without_an_id(stock: Stock) -> None:
    named = planned(stock, wish=Selection(message_ids=("1",)))
    unnamed = planned(stock, named=False)
    following = planned(stock)
    assert (of(named), of(unnamed), of(following)) == ([("1", "captured")], [], [])
    assert stop(unnamed) == ("aborted", "ann", "The DLQ's next plan replaced it.")
    assert (following.selected, following.behind) == (0, 1)  # behind the letter of the plan that was kept


def test_no_other_run_enlists_letters_of_a_plan(stock: Stock) -> None:
    run = planned(stock)
    other = Run.objects.create(name="other", dlq=stock.dlq, state="running")
    assert selection.select_letters(stock.dlq.pk, other.pk, ALL_LETTERS).selected == 0
    assert enlistment.enlist_letters(stock.dlq.pk, other.pk).letters == 0
    assert len(of(run)) == 2


def test_of_several_who_start_or_pause_a_run_at_once_one_does(stock: Stock) -> None:
    run = planned(stock)
    done = together([lambda: run_transitions.start(run, **BY)] * 4)
    assert [enlisted.letters for enlisted in done if enlisted] == [2]
    assert together([lambda: run_transitions.pause(run.pk, **BY)] * 4).count(None) == 3
    assert [act for act, *_ in acts(run)] == ["planned", "started", "paused"]


def test_a_plan_that_is_not_started_is_given_up_after_a_day_with_a_log_line(
    stock: Stock, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    run = planned(stock)
    clock.advance(86_300)
    assert plans.give_up_old_plans() == 0
    clock.advance(200)
    with caplog.at_level(logging.WARNING):
        assert plans.give_up_old_plans() == 1
    assert (stop(run)[:2], of(run)) == (("aborted", "the service"), [])
    assert f"The plan {run.name} was given up: it was not started within a day." in caplog.text
    assert Letter.objects.filter(state="captured", run=None).count() == 2


def test_a_plan_is_deleted_without_trace_but_a_started_run_is_not(stock: Stock) -> None:
    run = planned(stock)
    plans.delete_plan(run.pk)
    assert (Run.objects.count(), Letter.objects.filter(state="captured", run=None).count()) == (0, 2)
    kept = started(stock)
    plans.delete_plan(kept.pk)
    assert len(of(kept)) == 2


def test_pausing_and_resuming_record_who_and_why(stock: Stock) -> None:
    run = started(stock)
    assert run_transitions.pause(run.pk, by="ben", reason="lunch") == RunBefore("running", "", "")
    assert stop(run) == ("paused", "ben", "lunch")
    assert run_transitions.resume(run.pk, **BY) == RunBefore("paused", "ben", "lunch")
    assert stop(run) == ("running", "", "")
    assert acts(run)[-2:] == [
        ("paused", "ben", "lunch", "running", "paused"), ("resumed", *BY.values(), "paused", "running"),
    ]  # fmt: skip
    assert AuditEntry.objects.filter(run=run).latest("id").before == {"state": "paused", "by": "ben", "why": "lunch"}


Transition = Callable[[Run], object]
ACTIONS: dict[str, tuple[Transition, set[str]]] = {
    "start": (lambda run: run_transitions.start(run, **BY), {"planned"}),
    "pause": (lambda run: run_transitions.pause(run.pk, **BY), {"running"}),
    "resume": (lambda run: run_transitions.resume(run.pk, **BY), {"paused"}),
    "go_on": (lambda run: run_transitions.reopen(run.pk, **BY), {"finished"}),
    "abort": (lambda run: run_transitions.abort(run, **BY, stop_dlq=True), {"planned", "running", "paused"}),
}


@pytest.mark.parametrize("state", ["planned", "running", "paused", "aborted", "finished"])
@pytest.mark.parametrize("action", ACTIONS)
def test_a_transition_from_another_state_does_and_records_nothing(stock: Stock, action: str, state: str) -> None:
    run = started(stock)
    Run.objects.filter(pk=run.pk).update(state=state, stopped_by="s", why="w", finished_at=NOW)
    act, out_of = ACTIONS[action]
    assert bool(act(run)) == (state in out_of)
    changed = Run.objects.get(pk=run.pk).state != state
    assert (changed, AuditEntry.objects.filter(run=run).count()) == (state in out_of, 2 + (state in out_of))


@pytest.mark.parametrize("stop_dlq", [True, False])
def test_an_aborted_run_keeps_its_letters_waiting_and_stops_its_dlq_unless_told_otherwise(
    stock: Stock, stop_dlq: bool
) -> None:
    run = started(stock)
    run_transitions.abort(run, **BY, stop_dlq=stop_dlq)
    assert (stop(run)[0], of(run)) == ("aborted", [("1", "waiting"), ("2", "waiting")])
    assert (stops.stop_of(stock.dlq.pk) is not None) is stop_dlq


def test_aborting_a_plan_frees_its_letters_and_stops_nothing(stock: Stock) -> None:
    run = planned(stock)
    assert run_transitions.abort(run, **BY, stop_dlq=True) == RunBefore("planned", "", "")
    assert (of(run), stops.stop_of(stock.dlq.pk)) == ([], None)


def test_the_next_run_adopts_what_an_aborted_run_left(stock: Stock) -> None:
    run = aborted(stock)
    following = started(stock)
    assert (of(run), len(of(following))) == ([], 2)
    assert lanes_runs(stock) == {following.pk}


def test_letters_of_an_aborted_run_are_adopted_in_batches_before_the_next_begins(
    stock: Stock, monkeypatch: pytest.MonkeyPatch
) -> None:
    aborted(stock)
    following, told = planned(stock), list[tuple[int, bool]]()
    monkeypatch.setattr(leftover_lanes, "BATCH", 1)
    whole = rows.in_transaction

    def watched(work: Callable[[], Any]) -> Any:  # noqa: ANN401  whatever is done
        done = whole(work)
        told.append((len(of(following)), Run.objects.get(pk=following.pk).state == "running"))
        return done

    monkeypatch.setattr(rows, "in_transaction", watched)
    run_transitions.start(following, **BY)
    assert told == [(1, False), (2, False), (2, False), (2, True)]
    assert lanes_runs(stock) == {following.pk}


def test_only_a_plan_adopts_and_an_aborted_plan_leaves_its_letters_to_the_next(stock: Stock) -> None:
    left = aborted(stock)
    leftover_lanes.adopt_leftovers(stock.dlq.pk, left.pk)
    given_up = planned(stock)
    leftover_lanes.adopt_leftovers(stock.dlq.pk, given_up.pk)
    assert (len(of(left)), len(of(given_up))) == (0, 2)
    run_transitions.abort(given_up, **BY, stop_dlq=False)
    following = started(stock)
    assert (len(of(given_up)), len(of(following))) == (0, 2)


def test_the_next_run_adopts_what_a_plan_adopted_whose_start_crashed(stock: Stock) -> None:
    aborted(stock)
    died = planned(stock)
    leftover_lanes.adopt_leftovers(stock.dlq.pk, died.pk)
    following = started(stock)
    assert (len(of(died)), len(of(following))) == (0, 2)
    assert lanes_runs(stock) == {following.pk}
    run_transitions.start(died, **BY)
    assert len(of(following)) == 2


def test_a_paused_run_adopts_nothing_from_a_plan_that_is_being_started(stock: Stock) -> None:
    DeadLetterQueue.objects.update(mode="automatic")
    aborted(stock)
    being_started = planned(stock)
    leftover_lanes.adopt_leftovers(stock.dlq.pk, being_started.pk)
    automatic = Run.objects.create(
        name="automatic", dlq=stock.dlq, kind="automatic", state="paused", asked_by="beat", started_at=NOW,
        stopped_by="ann", why="the consumer is broken",
    )  # fmt: skip
    leftover_lanes.adopt_leftovers(stock.dlq.pk, automatic.pk)
    rows.in_transaction(lambda: enlistment.enlist_letters(stock.dlq.pk, automatic.pk))
    assert (len(of(being_started)), len(of(automatic))) == (2, 0)
    Run.objects.filter(pk=automatic.pk).update(state="running", stopped_by="", why="")
    leftover_lanes.adopt_leftovers(stock.dlq.pk, automatic.pk)
    assert (len(of(being_started)), len(of(automatic))) == (0, 2)


def test_two_plans_do_not_adopt_from_each_other_before_a_start(stock: Stock) -> None:
    aborted(stock)
    first, second = planned(stock), planned(stock)
    for plan in (first, second, first):
        leftover_lanes.adopt_leftovers(stock.dlq.pk, plan.pk)
    assert (len(of(first)), len(of(second))) == (2, 0)


def test_only_a_running_run_without_open_letters_is_finished(stock: Stock) -> None:
    run = started(stock)
    Letter.objects.filter(run=run).update(state="delivered", finished_at=NOW)
    for state in ("planned", "paused", "aborted"):
        Run.objects.filter(pk=run.pk).update(state=state, stopped_by="s", why="w")
        assert progress.finish_runs() == 0
    Run.objects.filter(pk=run.pk).update(state="running")
    assert progress.finish_runs() == 1


def test_a_run_has_waves_as_its_dlq_or_the_request_says(stock: Stock) -> None:
    assert [planned(stock).waves, planned(stock, in_waves=False).waves] == [True, False]


def test_waves_begin_with_the_run_restart_when_resumed_and_end_with_it(stock: Stock) -> None:
    run = started(stock)
    run_transitions.pause(run.pk, **BY)
    run_transitions.resume(run.pk, **BY)
    assert list(Wave.objects.order_by("no").values_list("size", "sent")) == [(1, 0), (1, None)]
    run_transitions.abort(run, **BY, stop_dlq=False)
    assert list(Wave.objects.order_by("no").values_list("size", "sent")) == [(1, 0), (1, 0)]


def test_a_plan_selects_again_after_its_keys_changed(stock: Stock) -> None:
    run = planned(stock)
    placement.place_again(stock.dlq.pk)
    run.refresh_from_db()
    assert (run.selected, of(run)) == (None, [])
    assert Letter.objects.filter(state="captured", planned=False).count() == 2
