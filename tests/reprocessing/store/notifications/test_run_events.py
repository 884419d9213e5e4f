"""A run that stops itself, or is finished, says so in the transaction that moves it, and quotes no message."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest

from reprocessing.domain.replay.verdicts import Refused
from reprocessing.models import Letter, Run
from reprocessing.pipeline.maintenance import recover
from reprocessing.pipeline.replay import send_batches
from reprocessing.store import rows
from reprocessing.store.maintenance import counters
from reprocessing.store.notifications import run_events
from reprocessing.store.ordering import lanes
from reprocessing.store.replay.intent import IntendedSend
from reprocessing.store.runs import progress, run_transitions
from reprocessing.store.safety.paused_runs import pause_run
from tests.race.abreast import together
from tests.reprocessing.incidents import is_open, statements, told
from tests.reprocessing.pipeline.bench import Clock, Outcomes
from tests.reprocessing.pipeline.safety.test_automatic_redrive_heals import automatic, live_through
from tests.reprocessing.store.stock import Stock

pytestmark = pytest.mark.django_db(transaction=True)

WHO: dict[str, Any] = {"by": "ann", "reason": "mended"}
CANARY = "c4n4ry-of-a-customer"


def test_a_run_that_pauses_itself_is_announced_once_and_concluded_when_resumed() -> None:
    run = Stock().run
    pause = partial(pause_run, run.pk, "why", public_why="told")
    assert together([partial(rows.in_transaction, pause)] * 4).count(None) == 3
    assert told("run_stopped") == [(f"run:{run.pk}", 1, True)]
    assert is_open("run_stopped")[f"run:{run.pk}"] == {
        "run": run.name, "run_id": run.pk, "dlq": run.dlq.name, "why": "told",
    }  # fmt: skip
    run_transitions.resume(run.pk, **WHO)
    assert told("run_stopped") == [(f"run:{run.pk}", 1, False)]


def test_aborting_a_run_concludes_its_incident() -> None:
    run = Stock().run
    rows.in_transaction(partial(pause_run, run.pk, "why"))
    run_transitions.abort(run, stop_dlq=False, **WHO)
    assert told("run_stopped") == [(f"run:{run.pk}", 1, False)]


def test_a_pause_by_a_person_is_no_incident() -> None:
    run = Stock().run
    run_transitions.pause(run.pk, **WHO)
    assert told("run_stopped") == []


def test_a_pause_and_its_announcement_are_committed_together(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Stock().run

    def pause_and_fail() -> None:
        pause_run(run.pk, "why")
        raise ZeroDivisionError

    def breaks(_: object) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        rows.in_transaction(pause_and_fail)
    assert told("run_stopped") == []
    monkeypatch.setattr(run_events, "announce", breaks)
    with pytest.raises(ZeroDivisionError):
        rows.in_transaction(partial(pause_run, run.pk, "why"))
    assert Run.objects.get().state == "running"


@pytest.mark.soak
def test_the_incident_of_a_run_that_gives_up_a_target_quotes_no_answer(clock: Clock) -> None:
    bench = automatic(20, give_up_after=600)

    def refuse(intended: Sequence[IntendedSend], *_: object, **__: object) -> Outcomes:
        return {attempt.attempt_id: Refused("503", CANARY) for attempt in intended}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(send_batches, "letters", refuse)
        live_through(bench, clock, 1_500)
    run = Run.objects.get()
    assert (run.state, CANARY in run.why) == ("paused", True)
    (facts,) = is_open("run_stopped").values()
    assert facts["why"].startswith(f"No message to {bench.target} succeeded: ")
    assert CANARY not in str(facts)
    assert [times for _, times, _ in told("run_stopped")] == [1]


@pytest.mark.soak
def test_a_redrive_loop_and_its_paused_run_are_announced_and_concluded(clock: Clock) -> None:
    bench = automatic(12, waves=False)
    for _ in range(5):
        bench.replay()
        for message in bench.delivered():
            bench.sqs.send_message(QueueUrl=bench.dlq_url, MessageBody=message["Body"])  # a copy without its marks
        bench.capture()
        bench.capture()
        counters.fold_deltas()
        recover.sweep_service()
    run = Run.objects.get()
    (facts,) = is_open("redrive_loop").values()
    assert (facts["run_id"], facts["dlq"], facts["messages"] >= 40) == (run.pk, bench.dlq.name, True)
    assert list(is_open("run_stopped")) == [f"run:{run.pk}"]
    run_transitions.resume(run.pk, **WHO)
    assert (is_open("redrive_loop"), is_open("run_stopped")) == ({}, {})


@pytest.mark.parametrize("letters", [50, pytest.param(5_000, marks=[pytest.mark.soak, pytest.mark.long])])
def test_a_finished_run_is_announced_once_with_its_counts(letters: int) -> None:
    stock = Stock()
    stale = [letter.pk for letter in stock.more_letters(letters - 1)[:3]]
    Letter.objects.update(state="delivered", finished_at=stock.letter.captured_at)
    Letter.objects.filter(pk__in=stale).update(state="parked", reason="stale")
    together([progress.finish_runs] * 3)
    (incident,) = told("run_finished")
    assert incident[:2] == (f"run:{stock.run.pk}", 1)
    facts = is_open("run_finished")[f"run:{stock.run.pk}"]
    assert {name: facts[name] for name in ("run", "dlq", "delivered", "parked", "duplicates", "discarded")} == {
        "run": stock.run.name, "dlq": stock.dlq.name, "delivered": letters - 3, "parked": 3, "duplicates": 0,
        "discarded": 0,
    }  # fmt: skip


def test_a_finished_run_took_no_time_when_the_clock_is_set_back(clock: Clock) -> None:
    stock = Stock()
    Run.objects.filter(pk=stock.run.pk).update(started_at=lanes.database_now())
    Letter.objects.update(state="delivered", finished_at=stock.letter.captured_at)
    clock.advance(-300)
    progress.finish_runs()
    assert is_open("run_finished")[f"run:{stock.run.pk}"]["seconds"] == 0


def test_a_sweep_that_finishes_no_run_runs_two_statements() -> None:
    Stock()
    with statements() as asked:
        assert progress.finish_runs() == 0
    assert len(asked) == 2
