"""An automatic run enlists many captured letters in batches, and keeps the order of each key."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import Mock

import pytest
from django.db import transaction

from reprocessing.domain.errors import NativeRedriveConflict
from reprocessing.domain.runs.selection import ALL_LETTERS, Selection
from reprocessing.models import DeadLetterQueue, Letter, Run
from reprocessing.pipeline.capture import capture
from reprocessing.pipeline.runs import drain, feed_run, plan
from reprocessing.store.ordering import lanes
from reprocessing.store.runs import enlistment_batches, leftover_lanes, run_transitions, selection
from reprocessing.store.runs.plans import RunRequest
from tests.race.abreast import elsewhere, waits_for_us
from tests.reprocessing.pipeline.bench import KEYED, Workbench
from tests.reprocessing.pipeline.benches import bodies_sent, bury_keyed

pytestmark = pytest.mark.django_db(transaction=True)

AUTOMATIC: dict[str, Any] = {"mode": "automatic", **KEYED}
WHO: dict[str, Any] = {"by": "ann", "reason": "mended"}
LETTERS = ("b2", "a3", "a1", "b1", "a2", "a4", "a5")


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enlistment_batches, "BATCH_LETTERS", 2)
    monkeypatch.setattr(enlistment_batches, "MAX_LOOKAHEAD", 4)


def _bench(**fields: object) -> Workbench:
    """Return a bench with mode automatic, whose seven letters were captured in mode manual."""
    bench = Workbench(fields=AUTOMATIC | fields)
    _capture(bench, *LETTERS)
    return bench


@pytest.fixture
def bench() -> Workbench:
    return _bench()


def _capture(bench: Workbench, *letters: str) -> None:
    """Capture letters and place them, without a run."""
    DeadLetterQueue.objects.update(mode="manual")
    bury_keyed(bench, *letters)
    bench.capture()
    DeadLetterQueue.objects.update(mode="automatic")


def _enlist(bench: Workbench, stop: Callable[[], bool] = lambda: False) -> plan.EnlistResult:
    return plan.enlist(bench.dlq, feed_run.automatic_run(bench.dlq), stop=stop)


def _enlisted(bench: Workbench) -> set[str]:
    return {body for body, state in bench.states().items() if state != "captured"}


def _replay_all(bench: Workbench) -> None:
    while {"waiting", "sending"} & set(bench.states().values()):
        bench.replay(seconds=60)


def _at_turn(number: int, does: Callable[[], object]) -> Callable[[], bool]:
    """Return a stop that never stops, and does something before the batch with this number."""
    turns = iter(range(1, 100))

    def stop() -> bool:
        if next(turns) == number:
            does()
        return False

    return stop


@pytest.mark.soak
def test_it_takes_them_in_several_transactions_and_no_letter_overtakes_another(bench: Workbench) -> None:
    turns = 0
    while (fed := _enlist(bench, lambda: True)).left:
        assert fed.letters == 2
        bench.replay()
        turns += 1
    _replay_all(bench)
    assert (turns, set(bench.states().values())) == (3, {"delivered"})
    assert sorted(bodies_sent(), key=lambda body: body[0]) == ["a1", "a2", "a3", "a4", "a5", "b1", "b2"]


def test_a_turn_takes_all_of_them_where_it_has_the_time(bench: Workbench) -> None:
    assert _enlist(bench) == plan.EnlistResult(letters=7, lanes=4)
    assert {letter.run_id for letter in Letter.objects.all()} == {Run.objects.get().pk}


def test_one_that_was_killed_in_between_keeps_what_it_took(bench: Workbench) -> None:
    with pytest.raises(KeyboardInterrupt):
        _enlist(bench, _at_turn(2, Mock(side_effect=KeyboardInterrupt)))
    assert _enlisted(bench) == {"b1", "b2", "a1", "a2"}
    assert _enlist(bench).letters == 3


@pytest.mark.soak
def test_an_earlier_letter_that_is_captured_meanwhile_keeps_the_later_ones_of_its_lane_back(bench: Workbench) -> None:
    assert _enlist(bench, _at_turn(1, lambda: _capture(bench, "a0"))).letters == 2
    assert _enlisted(bench) == {"b1", "b2"}
    assert _enlist(bench).letters == 6
    _replay_all(bench)
    assert [body for body in bodies_sent() if body[0] == "a"] == ["a0", "a1", "a2", "a3", "a4", "a5"]


def test_a_later_letter_that_is_captured_meanwhile_is_the_next_turn_s(bench: Workbench) -> None:
    assert _enlist(bench, _at_turn(2, lambda: _capture(bench, "a6"))).letters == 7
    assert bench.states()["a6"] == "captured"
    assert _enlist(bench).letters == 1


def test_a_letter_that_a_plan_took_meanwhile_keeps_the_later_ones_of_its_lane_back(bench: Workbench) -> None:
    def choose() -> None:
        with transaction.atomic():
            other = Run.objects.create(name="monday", dlq=bench.dlq)
            assert selection.select_letters(bench.dlq.pk, other.pk, Selection(limit=1)).selected == 1

    assert _enlist(bench, _at_turn(1, choose)).letters == 2
    assert _enlisted(bench) == {"b1", "b2"}


def test_whoever_selects_later_letters_leaves_them_behind_those_it_has_not_taken(bench: Workbench) -> None:
    _enlist(bench, lambda: True)
    later = Selection(message_ids=(bench.letter(payload__body=b"a5").message_id,))
    with transaction.atomic():
        other = Run.objects.create(name="monday", dlq=bench.dlq)
        assert selection.select_letters(bench.dlq.pk, other.pk, later) == selection.SelectedCount(0, 1)
        assert selection.select_letters(bench.dlq.pk, other.pk, ALL_LETTERS) == selection.SelectedCount(5, 0)


def test_whoever_pauses_the_run_in_between_is_obeyed(bench: Workbench) -> None:
    run = feed_run.automatic_run(bench.dlq)
    fed = _enlist(bench, _at_turn(1, lambda: run_transitions.pause(run.pk, **WHO)))
    assert (fed, len(_enlisted(bench))) == (plan.EnlistResult(letters=2, lanes=1), 2)
    assert _enlist(bench) == plan.EnlistResult()
    run_transitions.resume(run.pk, **WHO)
    assert _enlist(bench).letters == 5


def test_whoever_makes_the_dlq_manual_in_between_has_what_is_left(bench: Workbench) -> None:
    fed = _enlist(bench, _at_turn(1, lambda: DeadLetterQueue.objects.update(mode="manual")))
    assert (fed.letters, fed.left) == (2, False)
    assert drain.plan_run(bench.dlq, RunRequest("monday", "ann")).selected == 5


def test_whoever_hands_the_dlq_to_aws_in_between_keeps_it_out(bench: Workbench) -> None:
    def hand_over() -> None:
        DeadLetterQueue.objects.update(
            aws_redrive_since=lanes.database_now(), aws_redrive_by="ann", aws_redrive_reason="quicker"
        )

    with pytest.raises(NativeRedriveConflict):
        _enlist(bench, _at_turn(1, hand_over))
    assert _enlisted(bench) == {"b1", "b2"}


def test_of_two_processes_one_takes_at_a_time(bench: Workbench) -> None:
    run = feed_run.automatic_run(bench.dlq)
    through = enlistment_batches.count_free(bench.dlq.pk).newest
    first, second = enlistment_batches.next_automatic_batches(bench.dlq.pk, run.pk, through=through)
    with elsewhere() as begin:
        with transaction.atomic():
            assert enlistment_batches.enlist_automatic_batch(bench.dlq.pk, run.pk, first)
            assert (
                begin(lambda: enlistment_batches.enlist_automatic_batch(bench.dlq.pk, run.pk, second)).result(20)
                is None
            )
        assert begin(lambda: enlistment_batches.enlist_automatic_batch(bench.dlq.pk, run.pk, second)).result(20)


def test_an_instalment_waits_for_whoever_selects_letters_of_its_dlq(bench: Workbench) -> None:
    run = feed_run.automatic_run(bench.dlq)
    other = Run.objects.create(name="monday", dlq=bench.dlq)
    letters = enlistment_batches.next_automatic_batches(
        bench.dlq.pk, run.pk, through=enlistment_batches.count_free(bench.dlq.pk).newest
    )[0]
    with elsewhere() as begin:
        with transaction.atomic():
            assert selection.select_letters(bench.dlq.pk, other.pk, Selection(limit=1)).selected == 1
            taking = begin(lambda: enlistment_batches.enlist_automatic_batch(bench.dlq.pk, run.pk, letters))
            waits_for_us()
        taken = taking.result(20)
    assert taken
    assert (taken.letters, _enlisted(bench)) == (0, set())


def test_what_fits_one_instalment_is_taken_at_once_also_by_a_run_that_is_paused() -> None:
    bench = Workbench(fields=AUTOMATIC)
    run_transitions.pause(feed_run.automatic_run(bench.dlq).pk, **WHO)
    bury_keyed(bench, "a2", "a1")
    assert bench.capture().enlisted == plan.EnlistResult(letters=2, lanes=1)
    bench.replay()
    assert bench.states() == {"a1": "waiting", "a2": "waiting"}


def test_an_empty_dlq_is_not_captured_for_letters_that_wait_for_a_paused_run(bench: Workbench) -> None:
    run = feed_run.automatic_run(bench.dlq)
    run_transitions.pause(run.pk, **WHO)
    assert bench.capture().skipped
    run_transitions.resume(run.pk, **WHO)
    assert bench.capture().enlisted == plan.EnlistResult(letters=7, lanes=4)


def test_the_backlog_of_a_paused_run_is_not_sorted(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enlistment_batches, "next_automatic_batches", sorting := Mock(return_value=[]))
    run_transitions.pause(feed_run.automatic_run(bench.dlq).pk, **WHO)
    assert (_enlist(bench), sorting.called) == (plan.EnlistResult(), False)


@pytest.mark.soak
def test_it_begins_with_one_letter_and_not_anew_with_each_instalment() -> None:
    bench = _bench(waves=True)
    assert _enlist(bench, _at_turn(1, lambda: _replay_all(bench))).letters == 7
    _replay_all(bench)
    assert list(Run.objects.get().wave_history.order_by("no").values_list("size", "sent")) == [(1, 1), (10, None)]


def test_what_an_ended_run_left_is_adopted_in_batches_between_which_it_may_be_stopped(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leftover_lanes, "BATCH", 2)
    ended = drain.plan_run(bench.dlq, RunRequest("monday", "ann"))
    run_transitions.start(ended, **WHO)
    plan.enlist_started_plans(stop=lambda: False)
    run_transitions.abort(ended, stop_dlq=False, **WHO)
    run = feed_run.automatic_run(bench.dlq)
    for had in (2, 4, 6):
        assert _enlist(bench, lambda: True) == plan.EnlistResult(left=True)
        assert Letter.objects.filter(run=run).count() == had
    assert _enlist(bench, lambda: True) == plan.EnlistResult()
    assert Letter.objects.filter(run=run).count() == 7


@pytest.mark.soak
def test_a_turn_without_time_takes_one_instalment_and_leaves_the_rest_to_the_next(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = capture.letters

    def with_time(*args: Any, **options: Any) -> capture.Captured:  # noqa: ANN401
        return whole(*args, **(options | {"seconds": 10}))

    monkeypatch.setattr(capture, "letters", with_time)
    monkeypatch.setattr(feed_run, "_AT_LEAST", 0.0)
    fed = [bench.capture(seconds=0).enlisted for _ in range(4)]
    assert [(one.letters, one.left) for one in fed if one] == [(2, True), (2, True), (2, True), (1, False)]
