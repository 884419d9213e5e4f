"""`manage.py show_runs`: where every run stands, how far it is, and when it will end."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser
from django.db.models import F

from reprocessing import conf
from reprocessing.management.console import Console, add_json, find, whole
from reprocessing.management.output import run_output
from reprocessing.management.output.run_output import Seen
from reprocessing.management.shared.run_command import find_run
from reprocessing.models import Run
from reprocessing.models.run import RunState

_ENDED = (RunState.FINISHED, RunState.ABORTED)


class Command(Console):
    """Tells of runs; changes nothing."""

    help = "Tells of the runs of one dlq, or of all: those that have not ended, and the last ones that have."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", nargs="?", metavar="NAME", help="one dlq's name")
        parser.add_argument("--run", metavar="ID", help="one run alone")
        parser.add_argument(
            "--last", type=whole(0), default=5, metavar="N", help="so many that have ended (%(default)s)"
        )
        add_json(parser)

    def answer(self, options: dict[str, Any]) -> None:
        runs = Run.objects.select_related("dlq")
        if options["name"]:
            runs = runs.filter(dlq=find(options["name"]))
        if options["run"]:
            runs = runs.filter(pk=find_run(options["run"]).pk)
        # By their end: a drain that found nothing is begun after one that still goes, and ends before it.
        ended = runs.filter(state__in=_ENDED).order_by(F("finished_at").desc(nulls_last=True), "-pk")[: options["last"]]
        chosen = sorted([*runs.exclude(state__in=_ENDED), *ended], key=lambda one: one.pk)
        view = conf.current()
        seen = [Seen.look(one, count_lag=view.count_lag.total_seconds(), prices=view.prices) for one in chosen]
        if options["json"]:
            self.report({"runs": [run_output.in_json(one) for one in seen]})
        else:
            self.say(
                "\n\n".join("\n".join(run_output.lines(one)) for one in seen)
                or "There is no run. Plan one: manage.py drain_dlq NAME, a dry run."
            )
