"""The command `manage.py rerun`, which continues a run from this process."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from reprocessing.management.arguments import add_by, add_confirm, add_json, add_run_reason, not_empty
from reprocessing.management.command_line import command
from reprocessing.management.shared.drain_command import (
    DrainCommand,
    Interruption,
    refuse_native_redrive,
    refuse_stopped,
)
from reprocessing.management.shared.progress import ProgressLog
from reprocessing.management.shared.run_command import find_run
from reprocessing.models import Run
from reprocessing.models.run import RunState
from reprocessing.pipeline.runs import drain
from reprocessing.store.runs import progress


class Command(DrainCommand):
    """Continue a run with the messages and options of its plan.

    Sends the unfinished messages from this process and waits for their outcomes. Finished messages are not sent again.

    Examples:
        rerun orders-1a2b3c4d
        rerun orders-1a2b3c4d --confirm
    """

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("run", type=not_empty, metavar="RUN", help="id of the run (see show_runs)")
        parser.add_argument(
            "--enqueue", action="store_true", help="let the workers send the messages, and do not wait for outcomes"
        )
        add_by(parser)
        add_run_reason(parser)
        add_confirm(parser)
        add_json(parser)

    def answer(self, options: dict[str, Any]) -> None:
        run = find_run(options["run"], automatic=False)
        tally = progress.count_letters(run.pk)
        if not options["confirm"] or not tally.open:
            self.show_result(run, options, tally, dry_run=not options["confirm"])
            if not options["json"]:
                self.say(_next(run, options) if tally.open else "Nothing is left to do.")
            return
        refuse_stopped(run.dlq, acts=True)
        refuse_native_redrive(run.dlq, ProgressLog(self.stderr))
        with Interruption() as interruption:
            drain.continue_run(run, by=options["by"], reason=options["reason"] or "rerun")
            if options["enqueue"]:
                self.leave_to_workers(run, options)
            else:
                self.work(run, options, interruption)


def _next(run: Run, options: dict[str, Any]) -> str:
    if run.state in {RunState.PAUSED, RunState.ABORTED}:
        return drain.describe_stopped(run)
    flags = ["--enqueue"] if options["enqueue"] else []
    return f"This was a dry run: nothing was done. To continue:\n{command('rerun', run.name, *flags, '--confirm')}"
