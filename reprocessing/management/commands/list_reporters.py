"""The command `manage.py list_reporters`, which lists the consumers that may report outcomes of messages."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from reprocessing.management.arguments import add_json
from reprocessing.management.console import Console, format_time
from reprocessing.models import Reporter
from reprocessing.store.outcomes import reporters


class Command(Console):
    """List the consumers that may report outcomes.

    Shows the targets of each consumer, and the time of its last report.

    Examples:
        list_reporters
        list_reporters --json
    """

    def add_arguments(self, parser: CommandParser) -> None:
        add_json(parser)

    def answer(self, options: dict[str, Any]) -> None:
        heard = reporters.last_reports()
        found: list[dict[str, Any]] = [
            {
                "reporter": one.name,
                "targets": sorted(target.arn for target in one.targets.all()),
                "added_at": one.added_at,
                "added_by": one.added_by,
                "revoked_at": one.revoked_at,
                "last_heard_at": heard.get(one.pk),
            }
            for one in Reporter.objects.order_by("name").prefetch_related("targets")
        ]
        if options["json"]:
            self.report({"reporters": found})
            return
        if not found:
            self.say("No reporter has been added yet. Add one: manage.py add_reporter NAME --target TARGET --confirm")
            return
        self.table(("reporter", "state", "added", "last report", "targets"), map(_cells, found))


def _cells(row: dict[str, Any]) -> list[str]:
    state = f"revoked {format_time(row['revoked_at'])}" if row["revoked_at"] else "active"
    added = f"{format_time(row['added_at'])} by {row['added_by']}"
    return [row["reporter"], state, added, format_time(row["last_heard_at"]), ", ".join(row["targets"])]
