"""`manage.py resume_run`: a paused run goes on."""

from __future__ import annotations

from typing import Any

from reprocessing.management.command_line import command
from reprocessing.management.draining import stop_of
from reprocessing.management.operating import Operator, letters
from reprocessing.models import Run, native, operations
from reprocessing.models.operations import Moved
from reprocessing.models.run import RunKind, RunState
from reprocessing.pipeline import hand_over


class Command(Operator):
    """Resumes a run."""

    help = (
        "Has a paused run go on, whoever paused it, and says why it was. One that goes in waves begins with one letter "
        "again."
    )
    deed = "resumed"
    out_of = (RunState.PAUSED,)

    def act(self, run: Run, options: dict[str, Any]) -> Moved | None:
        hand_over.look_first(run.dlq_id)
        return operations.resume(run.pk, by=options["by"], reason=options["reason"])

    def told(self, run: Run, was: Moved, options: dict[str, Any]) -> list[str]:
        said = [letters(run), f"It was paused by {was.by}: {was.why}"]
        if not options["confirm"]:
            return [*said, f"NOT RESUMED: this was a dry run. {run.name} is resumed with --confirm."]
        begins = ", with one letter first" if run.waves else ""
        said.append(f"{run.name} is resumed{begins}. Workers replay it, where worker and beat run.")
        if run.kind != RunKind.STANDING:
            said.append(f"Here it goes on with: {command('rerun', run.name, '--confirm')}")
        moved = native.of(run.dlq_id)
        return [*said, *filter(None, [stop_of(run.dlq), native.in_words(moved) if moved else ""])]
