"""`manage.py rerun`: go on with a run as it was asked for; what is done of it is not done again."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser

from reprocessing.management.console import add_confirm, add_json
from reprocessing.management.draining import Drainer, Interruption, Telling, command, refuse, refuse_moves
from reprocessing.models import Run, progress
from reprocessing.models.run import RunKind
from reprocessing.pipeline import drain

_NAMED = 5


class Command(Drainer):
    """Tells what is left of a run; with --confirm goes on with it."""

    help = "Tells what is left of a run; with --confirm goes on with it, as it was asked for. Done is done."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("run", metavar="RUN", help="the run's id")
        parser.add_argument("--enqueue", action="store_true", help="leave the replay to the workers")
        add_confirm(parser)
        add_json(parser)

    def answer(self, options: dict[str, Any]) -> None:
        run = find_run(options["run"])
        tally = progress.tally(run.pk)
        if not options["confirm"] or not tally.open:
            self.tell(run, options, tally, dry_run=not options["confirm"])
            if not options["json"]:
                self.say(_next(run, options) if tally.open else "Nothing is left to do.")
            return
        refuse(run.dlq)
        refuse_moves(run.dlq, Telling(self.stderr))
        with Interruption() as interruption:
            drain.again(run)
            if options["enqueue"]:
                self.leave(run, options)
            else:
                self.work(run, options, interruption)


def find_run(name: str) -> Run:
    """The run of this id.

    Raises:
        CommandError: there is none, or it is a dlq's standing feed.
    """
    run = Run.objects.filter(name=name).select_related("dlq").first()
    if run is None:
        last = Run.objects.filter(kind=RunKind.DRAIN).order_by("-pk").values_list("name", flat=True)[:_NAMED]
        there_are = f"The last ones: {', '.join(last)}." if last else "None has been begun yet: see drain_dlq."
        raise CommandError(f'No run has the id "{name}". {there_are}')
    if run.kind == RunKind.STANDING:
        raise CommandError(
            f"This is the standing run of {run.dlq.name}, which beat feeds. Watch it with "
            f"{command('redrive_status', run.dlq.name, '--watch')}."
        )
    return run


def _next(run: Run, options: dict[str, Any]) -> str:
    flags = ["--enqueue"] if options["enqueue"] else []
    return f"This was a dry run: nothing was done. To go on:\n{command('rerun', run.name, *flags, '--confirm')}"
