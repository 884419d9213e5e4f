from __future__ import annotations

import pytest

from reprocessing.domain.lifecycle import LetterState
from reprocessing.models import AuditEntry, Lane, Letter, Run
from reprocessing.pipeline.parking_lot import act_on_parked
from reprocessing.store.runs import leftover_lanes, progress, run_transitions
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


def _next_run(run: Run, **values: object) -> Run:
    return Run.objects.create(name="tuesday", dlq=run.dlq, asked_by="ann", **values)


def test_a_run_that_took_over_more_messages_than_it_selected_stays_capped(monkeypatch: pytest.MonkeyPatch) -> None:
    found = _glance(_run(delivered=3, waiting=6), monkeypatch, exact=2, cap=5, selected=4)
    assert (found.delivered, found.waiting, found.letters, found.capped) == (3, 5, 8, frozenset({"waiting"}))


@pytest.mark.parametrize("selected", [0, 6])
def test_messages_of_an_aborted_run_count_for_the_run_that_takes_them_over(
    monkeypatch: pytest.MonkeyPatch, selected: int
) -> None:
    monkeypatch.setattr(leftover_lanes, "BATCH", 3)
    ended = _run(waiting=7)
    Lane.objects.update(run=ended)
    run_transitions.abort(ended, by="ann", reason="it rained", stop_dlq=False)
    run = _next_run(ended, selected=selected)
    source = ended.dlq.sources.get()
    for _ in range(selected):
        add_letter(source, LetterState.DELIVERED, run=run)
    leftover_lanes.adopt_leftovers(run.dlq_id, run.pk)
    entries = AuditEntry.objects.filter(run=run, act="changed").order_by("pk")
    assert [entry.after for entry in entries] == [{"from_other_runs": n} for n in (3, 3, 1)]
    cap = max(selected + 1, 5)
    found = _glance(run, monkeypatch, exact=2, cap=cap, selected=selected)
    assert (found.delivered, found.waiting, found.letters, found.capped) == (selected, 7, selected + 7, frozenset())


def test_released_messages_count_for_a_run_if_they_were_not_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = _run(parked=4)
    Run.objects.filter(pk=ended.pk).update(state="finished")
    run = _next_run(ended, state="running", selected=2)
    own = [add_letter(ended.dlq.sources.get(), LetterState.PARKED, run=run, sequence="1").pk for _ in range(2)]
    theirs = list(Letter.objects.filter(run=ended).values_list("pk", flat=True))
    act_on_parked.release([*own, *theirs], by="ann", reason="mended")
    found = _glance(run, monkeypatch, exact=2, cap=5, selected=2)
    assert (found.waiting, found.letters, found.capped) == (6, 6, frozenset())


def test_messages_that_left_an_aborted_run_are_not_counted_as_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    run = _run(delivered=4, captured=2)
    run_transitions.abort(run, by="ann", reason="it rained", stop_dlq=False)
    found = _glance(run, monkeypatch, exact=2, cap=3, selected=6)
    assert (found.delivered, found.letters, found.capped) == (3, 3, frozenset({"delivered"}))


def test_percentage_of_a_large_aborted_run_is_not_too_high(monkeypatch: pytest.MonkeyPatch) -> None:
    run = _run(delivered=2, waiting=6)
    run_transitions.abort(run, by="ann", reason="it rained", stop_dlq=False)
    found = _glance(run, monkeypatch, exact=2, cap=3, selected=8)
    assert (found.percent, found.is_lower_bound, found.letters) == (25, True, 8)
