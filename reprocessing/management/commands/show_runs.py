"""The command `manage.py show_runs`, which shows the progress of runs."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser
from django.db.models import F

from reprocessing import conf
from reprocessing.management.arguments import add_json, whole_number
from reprocessing.management.console import Console, find_dlq
from reprocessing.management.output import run_output
from reprocessing.management.shared.run_command import find_run
from reprocessing.models import Run
from reprocessing.models.run import RunState
from reprocessing.pipeline.runs.run_status import RunStatus

_ENDED = (RunState.FINISHED, RunState.ABORTED)


class Command(Console):
    """Show the progress of runs, and when they will end.

    Shows all runs that are planned, running or paused, and the runs that ended last (--last).

    Examples:
        show_runs orders
        show_runs --run orders-1a2b3c4d --json
    """

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", nargs="?", metavar="NAME", help="name of a DLQ, as given to add_dlq (default: all)")
        parser.add_argument("--run", metavar="ID", help="show only the run with this id")
        parser.add_argument(
            "--last", type=whole_number(0), default=5, metavar="N", help="max ended runs to show (default: %(default)s)"
        )
        add_json(parser)

    def answer(self, options: dict[str, Any]) -> None:
        runs = Run.objects.select_related("dlq")
        if options["name"]:
            runs = runs.filter(dlq=find_dlq(options["name"]))
        if options["run"]:
            runs = runs.filter(pk=find_run(options["run"]).pk)
        # Runs are ordered by their end: a short run can begin after a long run and end before the long run.
        ended = runs.filter(state__in=_ENDED).order_by(F("finished_at").desc(nulls_last=True), "-pk")[: options["last"]]
        chosen = sorted([*runs.exclude(state__in=_ENDED), *ended], key=lambda run: run.pk)
        view = conf.current()
        statuses = [RunStatus.read(run, count_lag=view.count_lag.total_seconds(), prices=view.prices) for run in chosen]
        if options["json"]:
            self.report({"runs": [run_output.in_json(one) for one in statuses]})
        else:
            self.say(
                "\n\n".join("\n".join(run_output.run_lines(one)) for one in statuses)
                or "There are no runs. To plan one: manage.py drain_dlq NAME, a dry run."
            )
