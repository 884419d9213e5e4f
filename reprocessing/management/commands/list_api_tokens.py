"""The command `manage.py list_api_tokens`, which lists the tokens of the HTTP API."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from reprocessing.management.arguments import add_json
from reprocessing.management.console import Console, format_time
from reprocessing.store.api import tokens
from reprocessing.store.ordering.lanes import database_now


class Command(Console):
    """List the tokens of the HTTP API.

    Shows the owner, the scopes, the last use, and the number of read requests of each token.

    Examples:
        list_api_tokens
        list_api_tokens --json
    """

    def add_arguments(self, parser: CommandParser) -> None:
        add_json(parser)

    def answer(self, options: dict[str, Any]) -> None:
        now = database_now()
        found = [
            {
                **tokens.token_values(row),
                "state": tokens.state_of(row, now),
                "expires_at": row.expires_at,
                "added_at": row.added_at,
                "added_by": row.added_by,
                "last_used_at": row.last_used_at,
                "reads": row.reads,
            }
            for row in tokens.listed()
        ]
        if options["json"]:
            self.report({"api_tokens": found})
            return
        if not found:
            make = "manage.py make_api_token NAME --user USER --scope SCOPE --confirm"
            self.say(f"No API token has been made yet. Make one: {make}")
            return
        self.table(("token", "state", "belongs to", "last use", "reads", "scopes"), map(_cells, found))


def _cells(row: dict[str, Any]) -> list[str]:
    owner = row["user"] or ", ".join(row["teams"]) or "nobody"
    reads = f"{row['reads']:,}"
    return [row["api_token"], row["state"], owner, format_time(row["last_used_at"]), reads, ", ".join(row["scopes"])]
