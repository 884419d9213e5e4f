"""The rows of the list of runs: state, DLQ, progress, rate, failures, and who planned the run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from reprocessing.admin.runs import run_progress
from reprocessing.domain.runs.forecast import measured_rate_in_words
from reprocessing.models import Run
from reprocessing.models.run import RunKind, RunState
from reprocessing.store.runs import run_list
from reprocessing.store.runs.run_list import MAX_PARKED, RunFigures

_MARKS: Final = {RunState.RUNNING: "chip-calm", RunState.PAUSED: "chip-bad", RunState.ABORTED: "chip-bad"}


def run_rows(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Return the template values of the rows for these runs, in the same order."""
    found = run_list.figures_of([run.pk for run in runs])
    return [_row(run, found[run.pk]) for run in runs if run.pk in found]


def _row(run: Run, figures: RunFigures) -> dict[str, Any]:
    return {
        "run": run,
        "mark": _MARKS.get(RunState(run.state), ""),
        "messages": _messages(run),
        "progress": _progress(run, figures),
        "percent": _percent(run, figures),
        "rate": _rate(run, figures),
        "failed": f"{figures.parked:,}{'+' if figures.parked >= MAX_PARKED else ''}" if figures.parked else "",
        "failed_address": run_progress.letters_of(run, {"state__exact": "parked"}),
    }


def _messages(run: Run) -> str:
    if run.kind == RunKind.AUTOMATIC:
        return "all of the DLQ"
    if run.is_for_released_letters:
        return "released"
    return "not selected yet" if run.selected is None else f"{run.selected:,}"


def _progress(run: Run, figures: RunFigures) -> str:
    if run.state in {RunState.PLANNED, RunState.ABORTED}:
        return ""
    if run.state == RunState.FINISHED:
        return "100 %"
    if run.kind == RunKind.AUTOMATIC and not figures.unfinished:
        return run_progress.WAITS_FOR_NEW
    left = f"{figures.unfinished:,}{'+' if figures.unfinished >= figures.most else ''} unfinished"
    percent = _percent(run, figures)
    if percent is None:
        return left
    return f"{'under ' if figures.unfinished >= figures.most else ''}{percent} %, {left}"


def _percent(run: Run, figures: RunFigures) -> int | None:
    """Return the percentage of messages that are finished; None: the run has no fixed number of messages."""
    if run.state == RunState.FINISHED:
        return 100
    if not run.selected or run.kind == RunKind.AUTOMATIC or run.state not in {RunState.RUNNING, RunState.PAUSED}:
        return None
    return max(100 * (run.selected - figures.unfinished) // run.selected, 0)


def _rate(run: Run, figures: RunFigures) -> str:
    """Return the present rate of a running run, or the average rate of a finished run, as text; else empty."""
    if run.state == RunState.RUNNING:
        return measured_rate_in_words(figures.rate).replace(" messages", "").replace(" message", "")
    if run.state != RunState.FINISHED or not run.selected or not run.started_at or not run.finished_at:
        return ""
    return f"{run.selected / max((run.finished_at - run.started_at).total_seconds(), 1):.3g}/s on average"
