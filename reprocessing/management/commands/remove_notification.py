"""The command `manage.py remove_notification`, which stops sending notifications to a destination."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from reprocessing.management.arguments import add_change_options
from reprocessing.management.console import Console
from reprocessing.management.output.notification_output import as_json, route_text
from reprocessing.store.notifications import routes


class Command(Console):
    """Stop sending notifications to a destination.

    Notifications that wait to be sent to this destination are deleted.

    Examples:
        remove_notification ops --reason "team was renamed"
        remove_notification ops --reason "team was renamed" --confirm
    """

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("destination", metavar="NAME", help="name of the destination")
        add_change_options(parser)

    def answer(self, options: dict[str, Any]) -> None:
        route = routes.find_route(options["destination"])
        if options["confirm"]:
            routes.remove_route(route.destination, by=options["by"], reason=options["reason"])
        if options["json"]:
            self.report({**as_json(route), "dry_run": not options["confirm"]})
        elif options["confirm"]:
            self.say(f"Nothing more is sent to {route.destination}.")
        else:
            self.say(f"{route_text(route)}\nThis was a dry run. To remove it, add --confirm.")
