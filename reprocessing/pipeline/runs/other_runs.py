"""The other runs and plans of a DLQ that have letters, and what to call them."""

from __future__ import annotations

from reprocessing.models import DeadLetterQueue, Run
from reprocessing.models.dlq import Mode
from reprocessing.models.run import RunKind, RunState
from reprocessing.store.runs import progress
from reprocessing.store.runs.progress import RunCounts


def in_progress(dlq: DeadLetterQueue, *but: Run) -> list[Run]:
    """Return the DLQ's other running runs with letters in progress, without its standing run in mode automatic."""
    found = Run.objects.filter(dlq=dlq, state=RunState.RUNNING).exclude(pk__in=[run.pk for run in but]).order_by("pk")
    if dlq.mode == Mode.AUTOMATIC:
        found = found.exclude(kind=RunKind.STANDING)
    return [run for run in found if quick_tally(run).under_way]


def paused_runs(dlq: DeadLetterQueue) -> list[Run]:
    """Return the DLQ's paused runs with waiting letters: letters of other runs may wait for these letters."""
    found = Run.objects.filter(dlq=dlq, state=RunState.PAUSED).order_by("pk")
    return [run for run in found if quick_tally(run).waiting]


def other_plans(dlq: DeadLetterQueue, but: Run) -> list[Run]:
    """Return the DLQ's other plans that have selected letters."""
    found = Run.objects.filter(dlq=dlq, state=RunState.PLANNED, selected__gt=0).exclude(pk=but.pk)
    return list(found.order_by("pk"))


def describe_holder(plan: Run) -> str:
    """Return a phrase that names the plan and who made it."""
    return f"in the plan {plan.name}, which {plan.asked_by} made and nobody has started"


def quick_tally(run: Run) -> RunCounts:
    """Return the estimated letter counts of a run, without counting all letters."""
    return progress.estimate_counts(run.pk, selected=run.selected)
