"""The command `manage.py pause_run`, which pauses a run."""

from __future__ import annotations

from typing import Any

from reprocessing.management.shared.run_command import RunCommand, run_progress
from reprocessing.models import Run
from reprocessing.models.run import RunState
from reprocessing.store.runs import run_transitions
from reprocessing.store.runs.run_transitions import RunBefore


class Command(RunCommand):
    """Pause a run on all workers.

    Sends in progress finish, and their results are recorded. The run's other messages wait until resume_run.

    Examples:
        pause_run orders-1a2b3c4d --reason "consumer is down"
        pause_run orders-1a2b3c4d --reason "consumer is down" --confirm
    """

    done_word = "paused"
    allowed_states = (RunState.RUNNING,)

    def change(self, run: Run, options: dict[str, Any]) -> RunBefore | None:
        return run_transitions.pause(run.pk, by=options["by"], reason=options["reason"])

    def result_lines(self, run: Run, was: RunBefore, options: dict[str, Any]) -> list[str]:
        if not options["confirm"]:
            return [run_progress(run), f"NOT PAUSED: this was a dry run. {run.name} is paused with --confirm."]
        resume = f"manage.py resume_run {run.name} --reason WHY --confirm"
        return [run_progress(run), f"{run.name} is paused: nothing more of it is sent. To resume: {resume}"]
