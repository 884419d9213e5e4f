from __future__ import annotations

import pytest

from reprocessing.domain.lifecycle import LetterState
from reprocessing.models import Run
from reprocessing.store.runs import progress
from reprocessing.store.runs.progress import RoughRunCounts
from tests.reprocessing.admin.parking_lot.parked_messages import dlq
from tests.reprocessing.commands.stock import add_letter

pytestmark = pytest.mark.django_db


def _run(**states: int) -> Run:
    source = dlq()
    run = Run.objects.create(name="monday", dlq=source.dlq, state="running", asked_by="ann")
    for state, n in states.items():
        for _ in range(n):
            add_letter(source, LetterState(state), run=run)
    return run


def _glance(
    run: Run, monkeypatch: pytest.MonkeyPatch, *, exact: int, cap: int, selected: int | None = None
) -> RoughRunCounts:
    monkeypatch.setattr(progress, "MAX_EXACT", exact)
    monkeypatch.setattr(progress, "MAX_COUNT", cap)
    found = progress.estimate_counts(run.pk, selected=selected)
    assert isinstance(found, RoughRunCounts)
    return found


def test_a_small_run_is_counted_letter_by_letter(monkeypatch: pytest.MonkeyPatch) -> None:
    run = _run(delivered=1, waiting=2, captured=1)
    monkeypatch.setattr(progress, "MAX_EXACT", 4)
    assert progress.estimate_counts(run.pk, selected=4) == progress.count_letters(run.pk)


def test_the_states_of_a_large_run_are_counted_separately(monkeypatch: pytest.MonkeyPatch) -> None:
    run = _run(delivered=2, waiting=1, captured=1, sending=1, parked=1, duplicate=1)
    found, whole = _glance(run, monkeypatch, exact=3, cap=5), progress.count_letters(run.pk)
    names = ("letters", "delivered", "waiting", "captured", "sending", "awaiting", "parked", "closed_as_duplicate")
    assert [getattr(found, name) for name in names] == [getattr(whole, name) for name in names]
    assert found.capped == frozenset()


def test_the_one_state_with_too_many_letters_is_derived_from_the_selection(monkeypatch: pytest.MonkeyPatch) -> None:
    found = _glance(_run(delivered=4, waiting=1), monkeypatch, exact=2, cap=3, selected=5)
    assert (found.delivered, found.waiting, found.letters, found.capped) == (4, 1, 5, frozenset())


def test_two_states_with_too_many_letters_are_both_reported_as_capped(monkeypatch: pytest.MonkeyPatch) -> None:
    found = _glance(_run(delivered=4, waiting=4), monkeypatch, exact=2, cap=3, selected=8)
    assert (found.delivered, found.waiting, found.letters) == (3, 3, 8)
    assert found.capped == {"delivered", "waiting"}
