"""Find the other runs and plans of a DLQ that have letters, and describe them."""

from __future__ import annotations

from reprocessing.models import DeadLetterQueue, Run
from reprocessing.models.dlq import Mode
from reprocessing.models.run import RunKind, RunState
from reprocessing.store.runs import progress
from reprocessing.store.runs.progress import RunCounts


def in_progress(dlq: DeadLetterQueue, *but: Run) -> list[Run]:
    """Return the DLQ's running runs that have letters in progress, except the runs `but`.

    If the DLQ is in mode automatic, its standing run is left out, too.
    """
    found = Run.objects.filter(dlq=dlq, state=RunState.RUNNING).exclude(pk__in=[run.pk for run in but]).order_by("pk")
    if dlq.mode == Mode.AUTOMATIC:
        found = found.exclude(kind=RunKind.STANDING)
    return [run for run in found if quick_tally(run).under_way]


def paused_runs(dlq: DeadLetterQueue) -> list[Run]:
    """Return the DLQ's paused runs that have waiting letters.

    Letters of other runs may have to wait for these letters.
    """
    found = Run.objects.filter(dlq=dlq, state=RunState.PAUSED).order_by("pk")
    return [run for run in found if quick_tally(run).waiting]


def other_plans(dlq: DeadLetterQueue, but: Run) -> list[Run]:
    """Return the DLQ's plans that have selected letters, except the plan `but`."""
    found = Run.objects.filter(dlq=dlq, state=RunState.PLANNED, selected__gt=0).exclude(pk=but.pk)
    return list(found.order_by("pk"))


def describe_holder(plan: Run) -> str:
    """Return a phrase for people about a plan that has a message: the plan's name, and who made the plan."""
    return f"in the plan {plan.name}, which {plan.asked_by} made and nobody has started"


def quick_tally(run: Run) -> RunCounts:
    """Return a run's letter counts; above 10,000 letters they are estimates, since not all letters are counted."""
    return progress.estimate_counts(run.pk, selected=run.selected)
