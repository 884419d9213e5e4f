"""`manage.py check_pulse`."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from reprocessing.management.arguments import number
from reprocessing.models import Pulse
from reprocessing.models.target import FORTNIGHT
from reprocessing.tasks import CONTROL


class Command(BaseCommand):
    """Fail if workers have stopped consuming tasks.

    Exit status 0 while tasks are consumed, else 1: for the health check of a container.

    Examples:
        check_pulse
        check_pulse --max-age 120 --json
    """

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--max-age", type=number(0, FORTNIGHT), default=60.0, metavar="SECONDS",
            help="fail above this age (default: %(default)s)",
        )  # fmt: skip
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        age = Pulse.ages(CONTROL).first()
        alive = Pulse.is_recent(age, within=timedelta(seconds=options["max_age"]))
        seconds = None if age is None else round(age.total_seconds(), 1)
        if options["json"]:
            self.stdout.write(json.dumps({"queue": CONTROL, "age_seconds": seconds, "alive": alive}))
        elif alive:
            self.stdout.write(f"A worker consumed from {CONTROL} {seconds} s ago.")
        if not alive:
            last = "No worker has ever consumed" if seconds is None else f"Nobody has consumed for {seconds} s"
            raise CommandError(
                f"{last} from {CONTROL}. Are a worker and beat running, with this database and these queue URLs?"
            )
