"""A letter that is enlisted before a waiting one goes first, by its own run and time."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reprocessing.models import Attempt, Lane, Run
from reprocessing.store.runs import run_transitions
from tests.reprocessing.pipeline.bench import KEYED, Workbench
from tests.reprocessing.pipeline.rulings import rule

pytestmark = pytest.mark.django_db(transaction=True)


def _enqueue(bench: Workbench, letter: str) -> Run:
    """Enqueue a letter named by its key and number, as a1, in a run of its own."""
    return bench.enqueue(letter, key=letter[0], n=letter[1:])


def _tried(bench: Workbench) -> list[str]:
    bodies = Attempt.objects.filter(letter__dlq=bench.dlq).order_by("id")
    return [bytes(body).decode() for body in bodies.values_list("letter__payload__body", flat=True)]


def test_an_earlier_letter_does_not_wait_for_a_paused_run_of_a_later_one() -> None:
    bench = Workbench(fields=KEYED)
    paused = _enqueue(bench, "a2")
    run_transitions.pause(paused.pk, by="anna", reason="the consumer is broken")
    run = _enqueue(bench, "a1")
    assert bench.lane().run_id == run.pk
    bench.replay()
    assert (bench.states(), bench.lane().run_id) == ({"a1": "delivered", "a2": "waiting"}, paused.pk)


def test_an_earlier_letter_of_a_paused_run_holds_a_later_one_back() -> None:
    bench = Workbench(fields=KEYED)
    _enqueue(bench, "a2")
    paused = _enqueue(bench, "a1")
    run_transitions.pause(paused.pk, by="anna", reason="the consumer is broken")
    bench.replay()
    assert (_tried(bench), bench.lane().run_id) == ([], paused.pk)
    run_transitions.resume(paused.pk, by="anna", reason="it is well again")
    bench.replay()
    assert _tried(bench) == ["a1", "a2"]


def test_an_earlier_letter_does_not_wait_for_the_backoff_of_a_later_one() -> None:
    bench = Workbench(fields={**KEYED, "backoff_base": 600, "backoff_cap": 600})
    _enqueue(bench, "a2")
    with bench.refusing("a2"):
        bench.replay(dice=lambda: 1.0)
    later = bench.letter().due_at
    _enqueue(bench, "a1")
    bench.replay()
    assert _tried(bench) == ["a2", "a1"]
    assert bench.lane().due_at == later


def test_an_earlier_letter_goes_before_a_held_one() -> None:
    bench = Workbench(fields=KEYED)
    rule("wait", "hold", "attribute:n equals 2")
    _enqueue(bench, "a2")
    bench.replay()
    assert bench.lane().phase == "held"
    _enqueue(bench, "a1")
    assert bench.lane().phase == "ready"
    bench.replay()
    assert (_tried(bench), bench.lane().phase) == (["a1"], "held")


def test_a_lane_that_awaits_an_outcome_waits_on() -> None:
    bench = Workbench(fields={**KEYED, "stale": "deliver"}, absence={})
    _enqueue(bench, "a2")
    bench.replay()
    _enqueue(bench, "a1")
    bench.replay()
    assert (_tried(bench), bench.lane().phase) == (["a2"], "awaiting")


def test_a_later_letter_does_not_change_the_lane() -> None:
    bench = Workbench(fields={**KEYED, "backoff_base": 600, "backoff_cap": 600})
    _enqueue(bench, "a1")
    with bench.refusing("a1"):
        bench.replay(dice=lambda: 1.0)
    before = Lane.objects.values_list("phase", "due_at", "run").get()
    _enqueue(bench, "a2")
    assert Lane.objects.values_list("phase", "due_at", "run").get() == before


def test_an_earlier_letter_waits_for_its_quiet_period() -> None:
    bench = Workbench(fields={**KEYED, "new_key_delay": 30})
    _enqueue(bench, "a2")
    _enqueue(bench, "a1")
    assert bench.lane().due_at == bench.letter(payload__body=b"a1").captured_at + timedelta(seconds=30)
