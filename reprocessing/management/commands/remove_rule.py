"""The command `manage.py remove_rule`, which removes a rule."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from reprocessing.management.arguments import add_change_options
from reprocessing.management.console import Console
from reprocessing.management.output.drain_output import counted
from reprocessing.management.shared import rule_command
from reprocessing.store.routing import rule_changes


class Command(Console):
    """Remove a rule.

    The other rules decide at once about messages that this rule held or delayed. Messages that this rule quarantined
    stay parked. To release them, use disable_rule --release first.

    Examples:
        remove_rule hold-acme --reason "migration is done"
        remove_rule hold-acme --reason "migration is done" --confirm
    """

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", metavar="NAME", help="name of the rule")
        add_change_options(parser)

    def answer(self, options: dict[str, Any]) -> None:
        row = rule_command.find_rule(options["name"])
        key = row.pk
        result: dict[str, Any] = {"rule": row.name, "dry_run": not options["confirm"]}
        if options["confirm"]:
            rule_changes.remove(key, by=options["by"], reason=options["reason"])
            result["asked_anew"] = rule_command.reroute_held()
            rule_changes.erase(key)
        if options["json"]:
            self.report(result)
        elif options["confirm"]:
            self.say(f"{row.name} is removed.")
        else:
            self.say(
                f"This was a dry run: {row.name} is removed with --confirm. It has decided about "
                f"{counted(row.match_count, 'message')}."
            )
