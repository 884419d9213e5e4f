"""A started plan with many letters is enlisted in batches by workers, and keeps the order of each key."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import transaction

from reprocessing.domain.lifecycle import LetterState
from reprocessing.models import DeadLetterQueue, Letter, Run
from reprocessing.pipeline.dlqs.examine import gathered
from reprocessing.pipeline.runs import drain, plan
from reprocessing.store.ordering.lanes import database_now
from reprocessing.store.runs import enlistment_batches, progress, run_transitions
from reprocessing.store.runs.plans import RunRequest
from tests.race.abreast import elsewhere
from tests.reprocessing.pipeline.bench import KEYED, Workbench
from tests.reprocessing.pipeline.benches import bodies_sent, bury_keyed

pytestmark = pytest.mark.django_db(transaction=True)

WHO: dict[str, Any] = {"by": "ann", "reason": "mended"}
LETTERS = ("b2", "a3", "a1", "b1", "a2", "a4", "a5")


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enlistment_batches, "BATCH_LETTERS", 2)
    monkeypatch.setattr(enlistment_batches, "MAX_LOOKAHEAD", 3)


@pytest.fixture
def bench() -> Workbench:
    bench = Workbench(fields=KEYED)
    bury_keyed(bench, *LETTERS)
    bench.capture()
    return bench


def _started(bench: Workbench) -> Run:
    run = drain.plan_run(bench.dlq, RunRequest("monday", "ann", in_waves=False))
    run_transitions.start(run, **WHO)
    return Run.objects.get(pk=run.pk)


def _stop_after(turns: int) -> Any:  # noqa: ANN401  a stop
    left = iter([False] * turns)
    return lambda: next(left, True)


def test_a_large_plan_is_started_at_once_and_none_of_it_enlisted(bench: Workbench) -> None:
    run = _started(bench)
    assert (run.state, set(bench.states().values())) == ("running", {"captured"})
    assert [one.id for one in enlistment_batches.unenlisted_runs(limit=5)] == [run.pk]
    assert progress.finish_runs() == 0


@pytest.mark.soak
def test_it_comes_onto_its_lanes_in_instalments_and_no_letter_overtakes_another(bench: Workbench) -> None:
    run, turns = _started(bench), 0
    while enlistment_batches.unenlisted_runs(limit=5):
        enlistment_batches.enlist_batch(run.pk, enlistment_batches.next_batches(run.pk)[0])
        bench.replay()
        turns += 1
    assert (turns, set(bench.states().values())) == (4, {"delivered"})
    assert sorted(bodies_sent(), key=lambda body: body[0]) == ["a1", "a2", "a3", "a4", "a5", "b1", "b2"]


def test_whoever_goes_on_stops_when_it_is_told_and_the_next_finishes_it(bench: Workbench) -> None:
    run = _started(bench)
    assert plan.enlist_started_plans(stop=_stop_after(1)) == 3
    assert progress.count_letters(run.pk).captured == 4
    assert plan.enlist_started_plans(stop=lambda: False) == 4
    assert enlistment_batches.unenlisted_runs(limit=5) == []


def test_a_run_that_another_worker_enlists_holds_up_no_other_run(bench: Workbench) -> None:
    run = _started(bench)
    other = Workbench(fields=KEYED)
    bury_keyed(other, "c1", "c2", "c3")
    other.capture()
    run_transitions.start(drain.plan_run(other.dlq, RunRequest("tuesday", "ann", in_waves=False)), **WHO)
    with elsewhere() as begin, transaction.atomic():
        assert enlistment_batches.enlist_batch(run.pk, enlistment_batches.next_batches(run.pk)[0])
        assert begin(lambda: plan.enlist_started_plans(stop=lambda: False)).result(20) == 3


def test_a_run_whose_dlq_aws_redrives_does_not_wait_to_be_enlisted(bench: Workbench) -> None:
    run = _started(bench)
    DeadLetterQueue.objects.filter(pk=bench.dlq.pk).update(
        aws_redrive_since=database_now(), aws_redrive_by="ann", aws_redrive_reason="mended"
    )
    assert enlistment_batches.unenlisted_runs(limit=5) == []
    assert enlistment_batches.enlist_batch(run.pk, enlistment_batches.next_batches(run.pk)[0]) is None


def test_the_time_for_enlisting_counts_from_the_first_batch() -> None:
    times = iter([100.0, 100.0, 109.9, 110.0])
    stop = plan.after_seconds(10.0, lambda: next(times))
    assert [stop() for _ in range(3)] == [False, False, True]


def test_objections_are_parked_with_their_instalment(bench: Workbench) -> None:
    Letter.objects.filter(payload__body=b"b2").update(blocked_reason="no_ordering_key")
    _started(bench)
    assert plan.enlist_started_plans(stop=lambda: False) == 7
    assert bench.states() == dict.fromkeys(LETTERS, "waiting") | {"b2": "parked"}


def test_of_a_paused_run_nothing_is_enlisted_until_it_goes_on(bench: Workbench) -> None:
    run = _started(bench)
    next_ones = enlistment_batches.next_batches(run.pk)[0]
    run_transitions.pause(run.pk, **WHO)
    assert enlistment_batches.enlist_batch(run.pk, next_ones) is None
    assert enlistment_batches.unenlisted_runs(limit=5) == []
    run_transitions.resume(run.pk, **WHO)
    assert plan.enlist_started_plans(stop=lambda: False) == 7


def test_what_an_aborted_run_had_not_begun_with_is_free_for_another(bench: Workbench) -> None:
    run = _started(bench)
    plan.enlist_started_plans(stop=_stop_after(0))
    run_transitions.abort(run, stop_dlq=False, **WHO)
    left = Letter.objects.filter(state=LetterState.CAPTURED)
    assert [letter.run_id for letter in left] == [None] * 5


def test_of_two_workers_one_pays_at_a_time(bench: Workbench) -> None:
    run = _started(bench)
    first, second = enlistment_batches.next_batches(run.pk)
    with elsewhere() as begin:
        with transaction.atomic():
            assert enlistment_batches.enlist_batch(run.pk, first)
            assert begin(lambda: enlistment_batches.enlist_batch(run.pk, second)).result(20) is None
        assert begin(lambda: enlistment_batches.enlist_batch(run.pk, second)).result(20)


def test_an_instalment_that_was_paid_already_changes_nothing(bench: Workbench) -> None:
    run = _started(bench)
    first = enlistment_batches.next_batches(run.pk)[0]
    enlistment_batches.enlist_batch(run.pk, first)
    done = enlistment_batches.enlist_batch(run.pk, first)
    assert done
    assert (done.letters, done.lanes, done.parked) == (0, 0, 0)


def test_their_places_are_fixed_from_the_start_on(bench: Workbench) -> None:
    assert gathered._of_letters(bench.dlq)["on_lanes"] == 0
    _started(bench)
    assert gathered._of_letters(bench.dlq)["on_lanes"] == 7
