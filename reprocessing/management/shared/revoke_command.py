"""The base class of revoke_api_token and revoke_reporter: dry run, output and errors."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from django.core.management.base import CommandParser

from reprocessing.management.arguments import add_change_options
from reprocessing.management.console import Console
from reprocessing.models import ApiToken, Reporter


class RevokeCommand(Console):
    """A command that revokes the token with a given name. In JSON output, `what` is the key that has this name."""

    what = ""
    name_help = ""

    @abstractmethod
    def find(self, name: str) -> ApiToken | Reporter:
        """Return the row of the token with this name, or raise an error that lists the known names."""

    @abstractmethod
    def revoke(self, name: str, *, by: str, reason: str) -> bool:
        """Revoke the token with this name. Return true if this call revoked it, false if it was revoked before."""

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the name, and --by, --reason, --confirm and --json."""
        parser.add_argument("name", metavar="NAME", help=self.name_help)
        add_change_options(parser)

    def answer(self, options: dict[str, Any]) -> None:
        """With --confirm, revoke the token; else show what would be done."""
        row = self.find(options["name"])
        already = row.revoked_at is not None
        if options["confirm"]:
            already = not self.revoke(row.name, by=options["by"], reason=options["reason"])
        if options["json"]:
            self.report({self.what: row.name, "dry_run": not options["confirm"], "already": already})
        elif already:
            self.say(f"{row.name} was revoked already: nothing to change.")
        elif options["confirm"]:
            self.say(f"{row.name} is revoked.")
        else:
            self.say(f"This was a dry run: {row.name} is revoked with --confirm.")
