"""The command `manage.py check_pulse`, which fails if workers have stopped consuming tasks."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.core.management.base import CommandError, CommandParser

from reprocessing.management.arguments import add_json, number
from reprocessing.management.console import Console
from reprocessing.models import Heartbeat
from reprocessing.models.target import MAX_SECONDS
from reprocessing.tasks import CONTROL


class Command(Console):
    """Fail if workers have stopped consuming tasks.

    The exit status is 0 if a worker consumed a task in the last --max-age seconds, else 1. Use this command as the
    health check of a container.

    Examples:
        check_pulse
        check_pulse --max-age 120 --json
    """

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--max-age", type=number(0, MAX_SECONDS), default=60.0, metavar="SECONDS",
            help="max seconds since a worker consumed a task (default: %(default)s)",
        )  # fmt: skip
        add_json(parser)

    def answer(self, options: dict[str, Any]) -> None:
        age = Heartbeat.ages(CONTROL).first()
        alive = Heartbeat.is_recent(age, within=timedelta(seconds=options["max_age"]))
        seconds = None if age is None else round(age.total_seconds(), 1)
        if options["json"]:
            self.report({"queue": CONTROL, "age_seconds": seconds, "alive": alive})
        elif alive:
            self.say(f"A worker consumed from {CONTROL} {seconds} s ago.")
        if not alive:
            last = "No worker has ever consumed" if seconds is None else f"No worker has consumed for {seconds} s"
            raise CommandError(
                f"{last} from {CONTROL}. Check that a worker and beat run, with this database and these queue URLs."
            )
