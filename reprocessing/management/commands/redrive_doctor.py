"""The command `manage.py redrive_doctor`, which diagnoses the service and its queues."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.db import DatabaseError, InterfaceError

from reprocessing import conf
from reprocessing.gateways.redis.shared_clients import send_rates
from reprocessing.management.arguments import add_json
from reprocessing.management.console import Console, find_dlq
from reprocessing.management.output import doctor_output as words
from reprocessing.pipeline.maintenance import doctor
from reprocessing.pipeline.maintenance.doctor import CheckContext, CheckResult
from reprocessing.tasks import CONTROL


class Command(Console):
    """Diagnose the service and its queues, and show how to fix each problem.

    Checks PostgreSQL, Redis, AWS, the service's own queues, beat, workers, and every DLQ. Changes nothing, and
    receives no messages. The exit status is 1 if there is an error, else 0, also with warnings or unknown results.

    Examples:
        redrive_doctor
        redrive_doctor orders --json
    """

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "names", nargs="*", metavar="NAME", help="names of DLQs, as given to add_dlq (default: all)"
        )
        add_json(parser)

    def answer(self, options: dict[str, Any]) -> None:
        context = CheckContext(
            names=tuple(known(options["names"])), control=CONTROL, conf=conf.current(), rates=send_rates(), now=now
        )
        results: list[CheckResult] = []
        for result in doctor.run_all_checks(context, lambda title: self.tell(title, options)):
            results.append(result)
            if not options["json"]:
                self.say("\n".join(words.check_lines(result)))
        if options["json"]:
            self.report(words.in_json(results))
        counts = words.count_by_severity(results)
        if counts["error"]:
            raise CommandError(f"{words.summary(counts)} Fix the errors as the arrows (->) say.")
        if not options["json"]:
            self.say(words.summary(counts))

    def tell(self, title: str, options: dict[str, Any]) -> None:
        """Show which check is running, if standard error is a terminal."""
        if not options["json"] and self.stderr.isatty():
            self.stderr.write(f"checking {title} …", str)


def known(names: list[str]) -> list[str]:
    """Check that DLQs with these names exist, and return the names.

    If PostgreSQL does not answer, return the names unchecked. The checks of the command will report the failure.

    Raises:
        CommandError: no DLQ has one of these names.
    """
    try:
        return [find_dlq(one).name for one in names]
    except (DatabaseError, InterfaceError):
        return names


def now() -> datetime:
    """Return the time of this machine's clock, which the doctor compares with other clocks."""
    return datetime.now(UTC)  # noqa: TID251  # only compared with other clocks
