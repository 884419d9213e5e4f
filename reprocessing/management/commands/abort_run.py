"""The command `manage.py abort_run`, which ends a run for good."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser

from reprocessing.management.command_line import command
from reprocessing.management.shared.run_command import RunCommand, run_progress
from reprocessing.management.shared.stop_text import stop_text
from reprocessing.models import Run
from reprocessing.models.run import RunKind, RunState
from reprocessing.store.runs import run_transitions
from reprocessing.store.runs.run_transitions import RunBefore


class Command(RunCommand):
    """End a run for good.

    Sends in progress finish, and their results are recorded. Unsent messages wait for the DLQ's next run. The
    command also stops all sends of the DLQ, because its other messages would probably fail, too. To allow sends again,
    run resume_redrive. If the run is only planned, the plan is deleted, and sends of the DLQ are not stopped. The
    messages of the plan can be planned again.

    Examples:
        abort_run orders-1a2b3c4d --reason "wrong selection"
        abort_run orders-1a2b3c4d --reason "wrong selection" --keep-dlq --confirm
    """

    done_word = "aborted"
    allowed_states = (RunState.PLANNED, RunState.RUNNING, RunState.PAUSED)

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--keep-dlq", action="store_true", help="end only the run; do not stop sends of the DLQ")

    def refuse(self, run: Run) -> None:
        if run.kind == RunKind.AUTOMATIC:
            pause = command("pause_run", run.name, "--reason", "WHY", "--confirm")
            raise CommandError(f"{run.name} is the automatic run of a DLQ and never ends. To pause it: {pause}")
        super().refuse(run)

    def change(self, run: Run, options: dict[str, Any]) -> RunBefore | None:
        return run_transitions.abort(run, by=options["by"], reason=options["reason"], stop_dlq=not options["keep_dlq"])

    def result_lines(self, run: Run, was: RunBefore, options: dict[str, Any]) -> list[str]:
        plan = was.state == RunState.PLANNED
        stops = not plan and not options["keep_dlq"]
        if not options["confirm"]:
            with_it = f", and {run.dlq.name} is stopped" if stops else ""
            return [
                run_progress(run),
                f"NOT ABORTED: this was a dry run. {run.name} is aborted with --confirm{with_it}.",
            ]
        if plan:
            return [f"{run.name} was not started, and is deleted. Its messages can be planned again."]
        again = f"To plan it: manage.py drain_dlq {run.dlq.name}, a dry run."
        said = [run_progress(run), f"{run.name} is aborted. Its unsent messages wait for the next run. {again}"]
        return [*said, stop_text(run.dlq)] if stops else said
