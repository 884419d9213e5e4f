"""The command `manage.py make_api_token`, which makes a token for the HTTP API."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from reprocessing.domain.api.scopes import Scope, read_scopes
from reprocessing.management.arguments import add_change_options, iso_time, not_empty, slug
from reprocessing.management.console import Console, format_time
from reprocessing.store.api import tokens
from reprocessing.store.api.tokens import TokenRequest


class Command(Console):
    """Make a token for the HTTP API.

    The token belongs to a user or to teams, and gives access to their DLQs. A user's token allows only what the user's
    permissions allow. The scopes everything:stop and approvals:decide are only for tokens of users. Prints the token's
    secret once; the service stores only a digest.

    Examples:
        make_api_token deploy --user ann --scope dlqs:read --scope runs:read
        make_api_token deploy --team payments --scope runs:read --expires 2030-01-01T00:00:00Z --confirm
    """

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", type=slug, metavar="NAME", help="name of the token: letters, digits, - _")
        parser.add_argument("--user", type=not_empty, metavar="USER", help="name of the user who owns the token")
        parser.add_argument(
            "--team",
            action="append",
            type=not_empty,
            metavar="TEAM",
            help="name of the team (a Django group, but not the group of a role) that owns the token; repeatable",
        )
        parser.add_argument(
            "--scope", action="append", choices=[scope.value for scope in Scope], metavar="SCOPE", required=True,
            help=f"what the token may do; repeatable: {', '.join(Scope)}",
        )  # fmt: skip
        parser.add_argument(
            "--expires", type=iso_time, metavar="TIME", help="when the token expires (ISO 8601; default: never)"
        )
        add_change_options(parser, reason="make_api_token")

    def answer(self, options: dict[str, Any]) -> None:
        user, teams = tokens.find_owner(options["user"], options["team"] or ())
        asked = TokenRequest(options["name"], read_scopes(options["scope"]), user, teams, options["expires"])
        tokens.check_request(asked)
        result: dict[str, Any] = {
            "api_token": asked.name,
            "dry_run": not options["confirm"],
            "scopes": list(asked.scopes),
            "user": options["user"],
            "teams": [team.name for team in teams],
            "expires_at": asked.expires_at,
        }
        if options["confirm"]:
            result["secret"] = tokens.make_token(asked, by=options["by"], reason=options["reason"]).secret
        if options["json"]:
            self.report(result)
            return
        ends = f" It expires at {format_time(asked.expires_at)}." if asked.expires_at else ""
        owner = f"the user {options['user']}" if user else f"the teams {', '.join(result['teams'])}"
        self.say(f"{asked.name} belongs to {owner}.{ends} It may:")
        for scope in asked.scopes:
            self.say(f"  {scope:18} {scope.sentence}")
        if options["confirm"]:
            self.say(f"Its secret, which is not shown again:\n{result['secret']}")
        else:
            self.say(f"This was a dry run: {asked.name} is made with --confirm.")
