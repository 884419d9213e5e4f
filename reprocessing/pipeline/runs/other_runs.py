"""Find the other runs and plans of a DLQ that have letters, and describe them."""

from __future__ import annotations

from typing import Final

from reprocessing.models import DeadLetterQueue, Run
from reprocessing.models.dlq import Mode
from reprocessing.models.run import RunKind, RunState
from reprocessing.store.ordering import blocking_runs
from reprocessing.store.ordering.blocking_runs import BlockingRun
from reprocessing.store.runs import progress
from reprocessing.store.runs.progress import RunCounts

#: Max letters of a run for which the blocking runs are looked up.
_LOOKED_UP: Final = 10_000


def in_progress(dlq: DeadLetterQueue, *but: Run) -> list[Run]:
    """Return the DLQ's running runs that have letters in progress, except the runs `but`.

    In mode automatic, the DLQ's automatic run is left out, too.
    """
    found = Run.objects.filter(dlq=dlq, state=RunState.RUNNING).exclude(pk__in=[run.pk for run in but]).order_by("pk")
    if dlq.mode == Mode.AUTOMATIC:
        found = found.exclude(kind=RunKind.AUTOMATIC)
    return [run for run in found if quick_tally(run).under_way]


def paused_runs(dlq: DeadLetterQueue) -> list[Run]:
    """Return the DLQ's paused runs that have waiting letters.

    Other runs may have to wait for these runs, because letters of the same key are sent in order.
    """
    found = Run.objects.filter(dlq=dlq, state=RunState.PAUSED).order_by("pk")
    return [run for run in found if quick_tally(run).waiting]


def other_plans(dlq: DeadLetterQueue, but: Run) -> list[Run]:
    """Return the DLQ's plans that have selected letters, except the plan `but`."""
    found = Run.objects.filter(dlq=dlq, state=RunState.PLANNED, selected__gt=0).exclude(pk=but.pk)
    return list(found.order_by("pk"))


def describe_holder(plan: Run) -> str:
    """Return a phrase for people about the plan that selected a message: its name, and who made it."""
    return f"in the plan {plan.name}, which {plan.asked_by} made and nobody has started"


def quick_tally(run: Run) -> RunCounts:
    """Return a run's letter counts. Above 10,000 letters, they are estimates, because counting would take long."""
    return progress.estimate_counts(run.pk, selected=run.selected)


def describe_blocking(run: Run) -> list[str]:
    """Return texts about other runs that send nothing, although letters of this run wait behind their letters.

    There is one text for each such run; it says what a person can do.
    """
    return [_describe_blocking(run, one) for one in blocking_runs.blocking_runs(run.pk, most=_LOOKED_UP)]


def _describe_blocking(run: Run, first: BlockingRun) -> str:
    waits = f"{first.messages:,} message{'' if first.messages == 1 else 's'} of {run.name}"
    said = f"Queued behind earlier messages of the run {first.name}, which is {first.state}: {waits}."
    return f"{said} {_next_step(run.dlq, first)}"


def _next_step(dlq: DeadLetterQueue, first: BlockingRun) -> str:
    match first.state:
        case RunState.PAUSED:
            return f"To resume that run: manage.py resume_run {first.name} --reason WHY --confirm"
        case _ if dlq.mode == Mode.AUTOMATIC:
            resume = f"manage.py resume_run automatic:{dlq.pk} --reason WHY --confirm"
            return f"The automatic run sends them after it is resumed: {resume}"
        case RunState.FINISHED:
            return f"To continue that run: manage.py rerun {first.name} --confirm"
        case RunState.PLANNED:
            return f"To start that run: manage.py drain_dlq {dlq.name} --run {first.name} --confirm"
        case _:
            return f"To send them in a new run: manage.py drain_dlq {dlq.name} --confirm"
