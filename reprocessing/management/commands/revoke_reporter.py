"""`manage.py revoke_reporter`."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from reprocessing.management.arguments import add_change_options
from reprocessing.management.console import Console
from reprocessing.store.outcomes import reporters


class Command(Console):
    """Revoke the token of a reporter.

    Outcomes that the reporter already reported are kept. Its reports about messages not captured yet are ignored.

    Examples:
        revoke_reporter shop --reason "token leaked"
        revoke_reporter shop --reason "token leaked" --confirm
    """

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", metavar="NAME", help="name of the reporter")
        add_change_options(parser)

    def answer(self, options: dict[str, Any]) -> None:
        row = reporters.find_reporter(options["name"])
        already = row.revoked_at is not None
        if options["confirm"]:
            already = not reporters.revoke(row.name, by=options["by"], reason=options["reason"])
        if options["json"]:
            self.report({"reporter": row.name, "dry_run": not options["confirm"], "already": already})
        elif already:
            self.say(f"{row.name} was revoked already: nothing to change.")
        elif options["confirm"]:
            self.say(f"{row.name} is revoked.")
        else:
            self.say(f"This was a dry run: {row.name} is revoked with --confirm.")
