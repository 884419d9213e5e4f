"""The figures of a plan: exact for a small plan, and as they were at the selection for a large one."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from pytest_django import Settings

from reprocessing.domain.lifecycle import LetterState
from reprocessing.models import Letter, Run, Source, Target
from reprocessing.pipeline.runs import drain
from reprocessing.store.ordering.lanes import database_now
from reprocessing.store.runs import plan_figures, run_transitions
from reprocessing.store.runs.plan_figures import BlockedCount, ExpiringLetters, LetterFigures
from reprocessing.store.runs.plans import RunRequest
from tests.reprocessing.admin.parking_lot.parked_messages import dlq
from tests.reprocessing.commands.stock import add_letter

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _brisk(settings: Settings) -> None:
    settings.REDRIVE = {"COUNT_LAG": 1}


def _planned(source: Source) -> Run:
    """A plan of three keys, the longest with three messages, and a message that cannot be sent."""
    now = database_now()
    for number, key in enumerate(["a", "a", "a", "b", "c"]):
        add_letter(
            source, LetterState.CAPTURED, planned=True, sequence=f"{number:06}", key_hash=key.encode(),
            expires_at=now + timedelta(hours=1 + number, minutes=1),
        )  # fmt: skip
    add_letter(source, LetterState.CAPTURED, planned=True, sequence="9", blocked_reason="no_ordering_key")
    return drain.plan_run(source.dlq, RunRequest("monday", "ann"))


def _read(run: Run) -> LetterFigures:
    run.refresh_from_db()
    return plan_figures.letter_figures(run, count_lag=1.0)


def test_a_large_plan_has_the_figures_of_its_selection(monkeypatch: pytest.MonkeyPatch) -> None:
    source = dlq()
    Target.objects.update(proof="absence", watched_by=source.dlq, window=4_000, advance="settled")
    small = _planned(source)
    live = _read(small)
    assert (small.figures, live.as_of) == (None, None)
    assert (live.prospect.letters, live.prospect.lanes, live.prospect.longest, live.prospect.objected) == (5, 3, 3, 1)
    assert [(each.letters, each.lanes, each.longest) for each in live.targets] == [(5, 3, 3)]
    assert live.objections == [BlockedCount("no_ordering_key", 1)]
    assert [each.letters for each in live.expiring] == [1] * 5
    monkeypatch.setattr(plan_figures, "MAX_EXACT", 5)
    Letter.objects.update(run=None)
    stored = _read(drain.plan_run(source.dlq, RunRequest("tuesday", "ann")))
    assert stored.as_of is not None
    now = live.prospect.now
    assert replace(stored, as_of=None, prospect=replace(stored.prospect, now=now)) == live
    Target.objects.update(rate=3)
    Letter.objects.update(run=None)  # not read again
    later = _read(Run.objects.get(name="tuesday"))
    assert ([target.rate for target in later.targets], later.prospect.letters) == ([3.0], 5)


def test_expiring_messages_are_counted_by_hour_from_the_first_of_each() -> None:
    source, hour = dlq(), database_now().replace(minute=0, second=0, microsecond=0) + timedelta(hours=5)
    for minutes in (10, 20, 70):
        add_letter(
            source, LetterState.CAPTURED, planned=True, sequence="1", single=True, key_hash=b"%d" % minutes,
            expires_at=hour + timedelta(minutes=minutes),
        )  # fmt: skip
    run = drain.plan_run(source.dlq, RunRequest("monday", "ann"))
    assert plan_figures.expiring_letters(source.dlq_id, run=run.pk) == [
        ExpiringLetters(source.target_id, hour + timedelta(minutes=10), 2),
        ExpiringLetters(source.target_id, hour + timedelta(minutes=70), 1),
    ]


def test_messages_of_ended_runs_are_counted_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_figures, "MAX_COUNT", 2)
    source = dlq()
    old = Run.objects.create(name="old", dlq=source.dlq, state="finished")
    for _ in range(3):
        add_letter(source, LetterState.WAITING, run=old)
    assert plan_figures.plan_figures_of(source.dlq_id).returned == 2


def test_messages_to_be_sent_are_counted_up_to_a_limit() -> None:
    run = _planned(dlq())
    assert [run_transitions.count_to_send(run.pk, most=most) for most in (2, 9, None)] == [2, 6, 6]


def test_messages_that_a_plan_would_take_over_are_to_be_sent_by_it_and_by_no_run_that_is_under_way() -> None:
    source = dlq()
    run = _planned(source)
    old = Run.objects.create(name="old", dlq=source.dlq, state="finished")
    for state in (LetterState.WAITING, LetterState.WAITING, LetterState.DELIVERED):
        add_letter(source, state, run=old)
    assert [run_transitions.count_to_send(run.pk, most=most) for most in (1, 7, None)] == [1, 7, 8]
    Run.objects.filter(pk=run.pk).update(state="running")
    assert run_transitions.count_to_send(run.pk) == 6
