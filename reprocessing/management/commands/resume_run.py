"""`manage.py resume_run`."""

from __future__ import annotations

from typing import Any

from reprocessing.management.command_line import command
from reprocessing.management.shared.run_command import Operator, letters
from reprocessing.management.shared.stops_in_words import stop_of
from reprocessing.models import Run
from reprocessing.models.run import RunKind, RunState
from reprocessing.pipeline.aws import native_redrive
from reprocessing.store.aws import aws_redrives
from reprocessing.store.runs import run_transitions
from reprocessing.store.runs.run_transitions import Moved


class Command(Operator):
    """Resume a paused run.

    Shows who paused it and why. A run in waves starts again with one message.

    Examples:
        resume_run orders-1a2b3c4d --reason "consumer fixed"
        resume_run orders-1a2b3c4d --reason "consumer fixed" --confirm
    """

    deed = "resumed"
    out_of = (RunState.PAUSED,)

    def act(self, run: Run, options: dict[str, Any]) -> Moved | None:
        native_redrive.look_first(run.dlq_id)
        return run_transitions.resume(run.pk, by=options["by"], reason=options["reason"])

    def told(self, run: Run, was: Moved, options: dict[str, Any]) -> list[str]:
        said = [letters(run), f"It was paused by {was.by}: {was.why}"]
        if not options["confirm"]:
            return [*said, f"NOT RESUMED: this was a dry run. {run.name} is resumed with --confirm."]
        begins = ", with one message first" if run.waves else ""
        said.append(f"{run.name} is resumed{begins}. Workers send it, if beat and workers are running.")
        if run.kind != RunKind.STANDING:
            said.append(f"To continue it here: {command('rerun', run.name, '--confirm')}")
        moved = aws_redrives.of(run.dlq_id)
        return [*said, *filter(None, [stop_of(run.dlq), aws_redrives.in_words(moved) if moved else ""])]
