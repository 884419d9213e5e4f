"""`manage.py revoke_reporter`: a consumer is heard no more."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from reprocessing.management.console import Console, add_confirm, add_json, add_person
from reprocessing.store.outcomes import reporters


class Command(Console):
    """Revokes a reporter's token."""

    help = (
        "Revokes a reporter's token. What it has said stays, and what followed from it; what it said of messages that "
        "are not known yet is not believed."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", metavar="NAME", help="the reporter's name")
        add_person(parser)
        add_confirm(parser)
        add_json(parser)

    def answer(self, options: dict[str, Any]) -> None:
        row = reporters.find(options["name"])
        already = row.revoked_at is not None
        if options["confirm"]:
            already = not reporters.revoke(row.name, by=options["by"], reason=options["reason"])
        if options["json"]:
            self.report({"reporter": row.name, "dry_run": not options["confirm"], "already": already})
        elif already:
            self.say(f"{row.name} was revoked before: nothing to change.")
        elif options["confirm"]:
            self.say(f"{row.name} is revoked.")
        else:
            self.say(f"This was a dry run: {row.name} is revoked with --confirm.")
