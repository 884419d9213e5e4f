"""`manage.py revoke_api_token`."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from reprocessing.management.arguments import add_change_options
from reprocessing.management.console import Console
from reprocessing.store.api import tokens


class Command(Console):
    """Revoke a token of the HTTP API.

    Its requests are refused from now on. What it started goes on: runs, and bulk actions.

    Examples:
        revoke_api_token deploy --reason "token leaked"
        revoke_api_token deploy --reason "token leaked" --confirm
    """

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", metavar="NAME", help="name of the token (see list_api_tokens)")
        add_change_options(parser)

    def answer(self, options: dict[str, Any]) -> None:
        row = tokens.find_token(options["name"])
        already = row.revoked_at is not None
        if options["confirm"]:
            already = not tokens.revoke(row.name, by=options["by"], reason=options["reason"])
        if options["json"]:
            self.report({"api_token": row.name, "dry_run": not options["confirm"], "already": already})
        elif already:
            self.say(f"{row.name} was revoked already: nothing to change.")
        elif options["confirm"]:
            self.say(f"{row.name} is revoked.")
        else:
            self.say(f"This was a dry run: {row.name} is revoked with --confirm.")
