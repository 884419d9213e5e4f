"""`manage.py list_notifications`: destinations, their events, and failures."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from reprocessing import conf
from reprocessing.management.console import Console, add_json, when
from reprocessing.management.output.notification_output import as_json, told, unheard, without_url
from reprocessing.models import NotificationRoute
from reprocessing.store.notifications import routes


class Command(Console):
    """Lists destinations."""

    help = "Lists destinations: the events of each, when it last got a notification, and failures. URLs are not shown."

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
                     "failures": row.failures, "trouble": row.trouble, "next_at": row.next_at}
                    for row, route in found
                ],
                "without_events": unused,
            })  # fmt: skip
            return
        for row, route in found:
            self.say(told(route))
            self.say(f"  {_kind(row.destination, known)}last sent: {when(row.sent_at)}")
            if lacks := without_url(row.destination, known):
                self.say(f"  {lacks}")
            if row.failures:
                self.say(f"  Failed attempts in a row: {row.failures:,}. Reason: {row.trouble}.")
                self.say(f"  Next attempt: {when(row.next_at)}.")
        for name in unused:
            self.say(f"{name}: has a URL, but gets no events. To add them: manage.py set_notification {name} --confirm")
        if silence := unheard(routes.events_without_route([route for _, route in found])):
            self.say(silence)


def _kind(name: str, known: Any) -> str:
    return f"{known[name].kind}; " if name in known else ""
