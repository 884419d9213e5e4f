"""The command `manage.py list_notifications`, which lists the destinations of notifications."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandParser

from reprocessing import conf
from reprocessing.domain.notifications.destination import Destination
from reprocessing.management.arguments import add_json
from reprocessing.management.console import Console, format_time
from reprocessing.management.output.notification_output import as_json, events_without_route_warning, without_url
from reprocessing.models import NotificationRoute
from reprocessing.store.notifications import routes
from reprocessing.store.notifications.routes import Route


class Command(Console):
    """List the destinations of notifications, the events that each destination gets, and failed attempts.

    Does not show the URLs of destinations, because they can contain secrets.

    Examples:
        list_notifications
        list_notifications --json
    """

    def add_arguments(self, parser: CommandParser) -> None:
        add_json(parser)

    def answer(self, options: dict[str, Any]) -> None:
        known = conf.current().destinations
        rows = list(NotificationRoute.objects.order_by("destination").prefetch_related("dlqs"))
        found = [(row, routes.read_route(row)) for row in rows]
        unused = sorted(set(known) - {row.destination for row in rows})
        if options["json"]:
            self.report({
                "destinations": [
                    {**as_json(route), "has_url": row.destination in known, "sent_at": row.sent_at,
                     "failures": row.failures, "last_error": row.last_error, "next_at": row.next_at}
                    for row, route in found
                ],
                "without_events": unused,
            })  # fmt: skip
            return
        if found:
            self.table(("destination", "kind", "events", "DLQs", "last sent"), [_cells(*one, known) for one in found])
        for row, _ in found:
            if lacks := without_url(row.destination, known):
                self.say(lacks)
            if row.failures:
                failed = f"{row.destination}: failed attempts in a row: {row.failures:,}. Reason: {row.last_error}."
                self.say(f"{failed} Next attempt: {format_time(row.next_at)}.")
        for name in unused:
            self.say(f"{name}: has a URL, but gets no events. To add them: manage.py set_notification {name} --confirm")
        if silence := events_without_route_warning(routes.events_without_route([route for _, route in found])):
            self.say(silence)


def _cells(row: NotificationRoute, route: Route, known: Mapping[str, Destination]) -> list[str]:
    kind = str(known[row.destination].kind) if row.destination in known else "no URL"
    events = ", ".join(kind.value for kind in route.kinds) or "all"
    return [row.destination, kind, events, ", ".join(route.dlqs) or "all, and the service", format_time(row.sent_at)]
