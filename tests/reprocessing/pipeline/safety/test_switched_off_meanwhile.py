"""A DLQ that becomes manual during a capture enlists nothing more."""

from __future__ import annotations

from typing import Any

import pytest

from reprocessing.models import DeadLetterQueue, Letter, Run, Wave
from reprocessing.pipeline.capture import capture
from reprocessing.pipeline.capture.capture import Captured
from reprocessing.pipeline.runs import drain, feed_run, plan
from reprocessing.pipeline.runs.feed_run import PollResult
from reprocessing.store.runs import enlistment_batches, leftover_lanes, run_transitions
from reprocessing.store.runs.plans import RunRequest
from tests.reprocessing.pipeline.bench import Workbench
from tests.reprocessing.pipeline.interposed import happens_after

pytestmark = pytest.mark.django_db(transaction=True)

AUTOMATIC: dict[str, Any] = {"mode": "automatic", "ordering_key": "attribute:key", "sequence": "attribute:n"}
WHO: dict[str, Any] = {"by": "ann", "reason": "the consumer is ill again"}
LETTERS = ("a1", "a2", "b1")


@pytest.fixture
def bench() -> Workbench:
    bench = Workbench(fields=AUTOMATIC)
    for name in LETTERS:
        bench.bury(name, key=name[0], n=name[1:])
    return bench


def _switch_off(mode: str = "manual") -> None:
    DeadLetterQueue.objects.update(mode=mode)


def _captured_meanwhile(bench: Workbench, monkeypatch: pytest.MonkeyPatch, mode: str = "manual") -> PollResult:
    with monkeypatch.context() as patch:
        happens_after(patch, capture, "letters", lambda: _switch_off(mode))
        gathered = bench.capture()
    assert isinstance(gathered.captured, Captured)
    assert gathered.captured.drained
    return gathered


def _waits_for_a_person(bench: Workbench) -> bool:
    bench.replay()
    return not Letter.objects.exclude(state="captured", run=None, lane=None).exists()


def _left_by_an_aborted_run(bench: Workbench) -> Run:
    _switch_off()
    bench.capture()
    ended = drain.plan_run(bench.dlq, RunRequest("monday", "ann"))
    run_transitions.start(ended, **WHO)
    run_transitions.abort(ended, stop_dlq=False, **WHO)
    DeadLetterQueue.objects.update(mode="automatic")
    return ended


@pytest.mark.parametrize("mode", ["manual", "observe"])
def test_letters_captured_while_the_dlq_becomes_manual_wait(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    assert _captured_meanwhile(bench, monkeypatch, mode).enlisted == plan.EnlistResult()
    assert _waits_for_a_person(bench)


def test_a_dlq_that_becomes_manual_before_the_enlistment_enlists_nothing(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    happens_after(monkeypatch, enlistment_batches, "count_free", _switch_off)
    assert bench.capture().enlisted == plan.EnlistResult()
    assert _waits_for_a_person(bench)


def test_letters_of_an_aborted_run_stay(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = _left_by_an_aborted_run(bench)
    bench.bury("c1", key="c", n="1")
    _captured_meanwhile(bench, monkeypatch)
    bench.replay()
    assert bench.states() == dict.fromkeys(LETTERS, "waiting") | {"c1": "captured"}
    assert set(Letter.objects.filter(state="waiting").values_list("run", flat=True)) == {ended.pk}


def test_a_dlq_that_becomes_manual_stops_the_adoption_of_lanes(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leftover_lanes, "BATCH", 1)
    ended = _left_by_an_aborted_run(bench)
    run = feed_run.automatic_run(bench.dlq)

    def after_one() -> bool:
        _switch_off()
        return False

    assert leftover_lanes.adopt_leftovers(bench.dlq.pk, run.pk, stop=after_one)
    assert (Letter.objects.filter(run=run).count(), Letter.objects.filter(run=ended).count()) == (1, 2)


def test_a_run_of_a_manual_dlq_begins_no_wave(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    DeadLetterQueue.objects.update(waves=True)
    bench.capture()
    bench.replay()
    before = list(Wave.objects.order_by("id").values_list("id", "settled_at"))
    bench.bury("c1", key="c", n="1")
    _captured_meanwhile(bench, monkeypatch)
    assert list(Wave.objects.order_by("id").values_list("id", "settled_at")) == before
