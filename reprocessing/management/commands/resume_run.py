"""The command `manage.py resume_run`, which resumes a paused run."""

from __future__ import annotations

from typing import Any

from reprocessing.management.command_line import command
from reprocessing.management.shared.run_command import RunCommand, run_progress
from reprocessing.management.shared.stop_text import stop_text
from reprocessing.models import Run
from reprocessing.models.run import RunKind, RunState
from reprocessing.pipeline.aws import follow_redrives
from reprocessing.store.aws import aws_redrives
from reprocessing.store.runs import run_transitions
from reprocessing.store.runs.run_transitions import RunBefore


class Command(RunCommand):
    """Resume a paused run.

    Shows who paused the run and why. If the run has waves, they begin again: one message is sent first.

    Examples:
        resume_run orders-1a2b3c4d --reason "consumer fixed"
        resume_run orders-1a2b3c4d --reason "consumer fixed" --confirm
    """

    done_word = "resumed"
    allowed_states = (RunState.PAUSED,)

    def change(self, run: Run, options: dict[str, Any]) -> RunBefore | None:
        follow_redrives.check_before_resuming(run.dlq_id)
        return run_transitions.resume(run.pk, by=options["by"], reason=options["reason"])

    def result_lines(self, run: Run, was: RunBefore, options: dict[str, Any]) -> list[str]:
        said = [run_progress(run), f"It was paused by {was.by}: {was.why}"]
        if not options["confirm"]:
            return [*said, f"NOT RESUMED: this was a dry run. {run.name} is resumed with --confirm."]
        begins = ", with one message first" if run.waves else ""
        said.append(f"{run.name} is resumed{begins}. Workers send it, if beat and workers are running.")
        if run.kind != RunKind.AUTOMATIC:
            said.append(f"To continue it here: {command('rerun', run.name, '--confirm')}")
        moved = aws_redrives.current(run.dlq_id)
        return [*said, *filter(None, [stop_text(run.dlq), aws_redrives.describe(moved) if moved else ""])]
