"""`manage.py rerun`: go on with a run as it was asked for; what is done of it is not done again."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from reprocessing.management.command_line import command
from reprocessing.management.console import add_confirm, add_json, whoever_is_here
from reprocessing.management.shared.drain_command import Drainer, Interruption, Telling, refuse, refuse_moves
from reprocessing.management.shared.run_command import find_run
from reprocessing.models import Run
from reprocessing.models.run import RunState
from reprocessing.pipeline.runs import drain
from reprocessing.store.runs import progress


class Command(Drainer):
    """Tells what is left of a run; with --confirm goes on with it."""

    help = "Tells what is left of a run; with --confirm goes on with it, as it was asked for. Done is done."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("run", metavar="RUN", help="the run's id")
        parser.add_argument("--enqueue", action="store_true", help="leave the replay to the workers")
        add_confirm(parser)
        add_json(parser)

    def answer(self, options: dict[str, Any]) -> None:
        run = find_run(options["run"], standing=False)
        tally = progress.tally(run.pk)
        if not options["confirm"] or not tally.open:
            self.tell(run, options, tally, dry_run=not options["confirm"])
            if not options["json"]:
                self.say(_next(run, options) if tally.open else "Nothing is left to do.")
            return
        refuse(run.dlq, acts=True)
        refuse_moves(run.dlq, Telling(self.stderr))
        with Interruption() as interruption:
            drain.again(run, by=whoever_is_here(), reason="rerun")
            if options["enqueue"]:
                self.leave(run, options)
            else:
                self.work(run, options, interruption)


def _next(run: Run, options: dict[str, Any]) -> str:
    if run.state in {RunState.PAUSED, RunState.ABORTED}:
        return drain.standing_still(run)
    flags = ["--enqueue"] if options["enqueue"] else []
    return f"This was a dry run: nothing was done. To go on:\n{command('rerun', run.name, *flags, '--confirm')}"
