"""The command `manage.py test_notification`, which sends a test notification to a destination."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser

from reprocessing import conf
from reprocessing.domain.notifications.delivery import Failed
from reprocessing.management.arguments import add_json, number
from reprocessing.management.console import Console
from reprocessing.management.output.notification_output import without_url
from reprocessing.pipeline import notifications
from reprocessing.pipeline.notifications.deliver import SEND_SECONDS


class Command(Console):
    """Send a test notification to a destination.

    Sends from this process, not from a worker, and shows whether the destination accepted the notification.

    Examples:
        test_notification ops
        test_notification ops --timeout 30 --json
    """

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("destination", metavar="NAME", help="name of the destination, such as ops")
        parser.add_argument(
            "--timeout", type=number(1, 60), default=SEND_SECONDS, metavar="SECONDS",
            help="max seconds until the destination answers (default: %(default)g)",
        )  # fmt: skip
        add_json(parser)

    def answer(self, options: dict[str, Any]) -> None:
        name, view = options["destination"], conf.current()
        if lacks := without_url(name, view.destinations):
            raise CommandError(f"Nothing was sent. {lacks}")
        kind = view.destinations[name].kind
        if not options["json"]:
            self.say(f"Sending a test to {name} ({kind}); it may take {options['timeout']:g} s …")
        came = notifications.send_trial(view, name, seconds=options["timeout"])
        why = came.why if isinstance(came, Failed) else ""
        if options["json"]:
            self.report({"destination": name, "kind": kind, "sent": not why, "why": why})
        if why:
            raise CommandError(f"The test could not be sent to {name}: {why}. Check the destination, and its URL.")
        if not options["json"]:
            self.say(f"{name} accepted it. Check that it has arrived.")
