"""`manage.py set_notification`: which events, of which DLQs, a destination is told of."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from reprocessing import conf
from reprocessing.domain.notifications.event import EventKind
from reprocessing.management.console import Console, add_confirm, add_json, add_person
from reprocessing.management.notification_words import as_json, told, without_url
from reprocessing.store.notifications import routes
from reprocessing.store.notifications.routes import Route


class Command(Console):
    """Sets what a destination is told."""

    help = (
        "Sets which events, of which DLQs, a destination is told of. Its URL is a variable of the environment: "
        "REDRIVE_NOTIFY_OPS for the destination ops. What was set before is replaced."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        events = ", ".join(kind.value for kind in EventKind)
        parser.add_argument("destination", metavar="NAME", help="the destination, such as ops")
        parser.add_argument(
            "--events", nargs="+", default=["all"], metavar="EVENT", help=f"all (the default), or some of: {events}"
        )
        parser.add_argument(
            "--dlq", action="append", default=[], metavar="NAME",
            help="only what is about this DLQ; may be given several times. Without it: every DLQ, and what is about "
            "none, such as a silent beat",
        )  # fmt: skip
        add_person(parser, reason="set_notification")
        add_confirm(parser)
        add_json(parser)

    def answer(self, options: dict[str, Any]) -> None:
        names = [name for entry in options["events"] for name in entry.split(",")]
        wanted = Route(options["destination"], routes.read_kinds(names), tuple(sorted(set(options["dlq"]))))
        routes.check(wanted)
        before = routes.route(wanted.destination)
        lacks = without_url(wanted.destination, conf.current().destinations)
        if options["confirm"]:
            routes.set_route(wanted, by=options["by"], reason=options["reason"])
        if options["json"]:
            self.report({
                **as_json(wanted), "dry_run": not options["confirm"], "before": before and as_json(before),
                "has_url": not lacks,
            })  # fmt: skip
            return
        self.say(told(wanted))
        if before and before != wanted:
            self.say(f"Before: {told(before)}")
        if lacks:
            self.say(lacks)
        if before == wanted:
            self.say("It is set so already: nothing to change.")
        elif options["confirm"]:
            self.say(f"It is set. Try it: manage.py test_notification {wanted.destination}")
        else:
            self.say("This was a dry run: it is set with --confirm.")
