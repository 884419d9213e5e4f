"""The command `manage.py set_notification`, which sets which events are sent to a destination."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from reprocessing import conf
from reprocessing.domain.notifications.event import EventKind
from reprocessing.management.arguments import add_change_options
from reprocessing.management.console import Console
from reprocessing.management.output.notification_output import as_json, route_text, without_url
from reprocessing.store.notifications import routes
from reprocessing.store.notifications.routes import Route


class Command(Console):
    """Set which events are sent to a destination, and for which DLQs.

    Replaces the earlier settings of the destination. The URL of the destination is not set here: it is the value of an
    environment variable, such as REDRIVE_NOTIFY_OPS for the destination ops.

    Examples:
        set_notification ops --confirm
        set_notification team-a --events run_finished parked_many --dlq orders --confirm
    """

    def add_arguments(self, parser: CommandParser) -> None:
        events = ", ".join(kind.value for kind in EventKind)
        parser.add_argument("destination", metavar="NAME", help="name of the destination, such as ops")
        parser.add_argument(
            "--events",
            nargs="+",
            default=["all"],
            metavar="EVENT",
            help=f"events to send, one or more of {events} (default: all)",
        )
        parser.add_argument(
            "--dlq", action="append", default=[], metavar="NAME",
            help="send only events of this DLQ; repeatable (default: of all DLQs and of the service itself)",
        )  # fmt: skip
        add_change_options(parser, reason="set_notification")

    def answer(self, options: dict[str, Any]) -> None:
        names = [name for entry in options["events"] for name in entry.split(",")]
        wanted = Route(options["destination"], routes.read_kinds(names), tuple(sorted(set(options["dlq"]))))
        routes.check_route(wanted)
        before = routes.route_or_none(wanted.destination)
        lacks = without_url(wanted.destination, conf.current().destinations)
        if options["confirm"]:
            routes.set_route(wanted, by=options["by"], reason=options["reason"])
        if options["json"]:
            self.report({
                **as_json(wanted), "dry_run": not options["confirm"], "before": before and as_json(before),
                "has_url": not lacks,
            })  # fmt: skip
            return
        self.say(route_text(wanted))
        if before and before != wanted:
            self.say(f"Before: {route_text(before)}")
        if lacks:
            self.say(lacks)
        if before == wanted:
            self.say("This is set already: nothing to change.")
        elif options["confirm"]:
            self.say(f"Saved. Test it: manage.py test_notification {wanted.destination}")
        else:
            self.say("This was a dry run. To save it, add --confirm.")
