"""`manage.py list_reporters`: who may report, on what, and when each was last heard."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser
from django.db.models import Max

from reprocessing.management.console import Console, add_json, when
from reprocessing.models import Report, Reporter


class Command(Console):
    """Lists reporters."""

    help = "Lists the consumers that may report, the targets of each, and when it was last heard."

    def add_arguments(self, parser: CommandParser) -> None:
        add_json(parser)

    def answer(self, options: dict[str, Any]) -> None:
        heard = dict(Report.objects.order_by().values_list("reporter").annotate(last=Max("received_at")))
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
        for row in found:
            state = f"revoked {when(row['revoked_at'])}" if row["revoked_at"] else "heard"
            self.say(f"{row['reporter']}  ({state}; added {when(row['added_at'])} by {row['added_by']})")
            self.say(f"  last heard  {when(row['last_heard_at'])}")
            for target in row["targets"]:
                self.say(f"  target      {target}")
        if not found:
            self.say("No reporter has been added yet. Add one: manage.py add_reporter NAME --target TARGET --confirm")
