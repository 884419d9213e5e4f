"""`manage.py remove_notification`: stop sending notifications to a destination."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from reprocessing.management.console import Console, add_confirm, add_json, add_person
from reprocessing.management.output.notification_output import as_json, told
from reprocessing.store.notifications import routes


class Command(Console):
    """Removes what was set for a destination."""

    help = "Stops sending notifications to a destination. Those that wait to be sent there are deleted."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("destination", metavar="NAME", help="the destination")
        add_person(parser)
        add_confirm(parser)
        add_json(parser)

    def answer(self, options: dict[str, Any]) -> None:
        route = routes.find_route(options["destination"])
        if options["confirm"]:
            routes.remove_route(route.destination, by=options["by"], reason=options["reason"])
        if options["json"]:
            self.report({**as_json(route), "dry_run": not options["confirm"]})
        elif options["confirm"]:
            self.say(f"Nothing more is sent to {route.destination}.")
        else:
            self.say(f"{told(route)}\nThis was a dry run. To remove it, add --confirm.")
