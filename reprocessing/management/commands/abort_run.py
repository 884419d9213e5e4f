"""`manage.py abort_run`: a run ends for good; what it has not sent is left to another one."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser

from reprocessing.management.command_line import command
from reprocessing.management.shared.run_command import Operator, letters
from reprocessing.management.shared.stops_in_words import stop_of
from reprocessing.models import Run
from reprocessing.models.run import RunKind, RunState
from reprocessing.store.runs import run_transitions
from reprocessing.store.runs.run_transitions import Moved


class Command(Operator):
    """Aborts a run, or gives up a plan."""

    help = (
        "Ends a run: nothing of it is sent any more, what is on the wire is settled, and what waits keeps waiting for "
        "the dlq's next run. The dlq is stopped with it, unless told otherwise: its next letters would fail likewise. "
        "A plan that was not started is given up: its letters are free again."
    )
    deed = "aborted"
    out_of = (RunState.PLANNED, RunState.RUNNING, RunState.PAUSED)

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--keep-dlq", action="store_true", help="do not stop the dlq's sends")

    def refuse(self, run: Run) -> None:
        if run.kind == RunKind.STANDING:
            pause = command("pause_run", run.name, "--reason", "WHY", "--confirm")
            raise CommandError(f"{run.name} is fed by beat and never ends. To have it send nothing: {pause}")
        super().refuse(run)

    def act(self, run: Run, options: dict[str, Any]) -> Moved | None:
        return run_transitions.abort(run, by=options["by"], reason=options["reason"], stop_dlq=not options["keep_dlq"])

    def told(self, run: Run, was: Moved, options: dict[str, Any]) -> list[str]:
        plan = was.state == RunState.PLANNED
        stops = not plan and not options["keep_dlq"]
        if not options["confirm"]:
            with_it = f", and {run.dlq.name} is stopped with it" if stops else ""
            return [letters(run), f"NOT ABORTED: this was a dry run. {run.name} is aborted with --confirm{with_it}."]
        if plan:
            return [f"{run.name} was not started, and is given up: its letters are free again."]
        again = f"manage.py drain_dlq {run.dlq.name}, a dry run."
        said = [letters(run), f"{run.name} is aborted. What is left of it goes along with the next run: {again}"]
        return [*said, stop_of(run.dlq)] if stops else said
