"""`manage.py remove_rule`: a rule is gone; what it held or delayed goes on."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from reprocessing.management.console import Console, add_confirm, add_json, add_person
from reprocessing.management.output.drain_output import counted
from reprocessing.management.shared import rule_command
from reprocessing.store.routing import rule_changes


class Command(Console):
    """Removes one rule."""

    help = "Removes a rule. What it quarantined stays parked, and names it; see disable_rule --release."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", metavar="NAME", help="the rule's name")
        add_person(parser)
        add_confirm(parser)
        add_json(parser)

    def answer(self, options: dict[str, Any]) -> None:
        row = rule_command.find_rule(options["name"])
        key = row.pk
        told: dict[str, Any] = {"rule": row.name, "dry_run": not options["confirm"]}
        if options["confirm"]:
            rule_changes.remove(key, by=options["by"], reason=options["reason"])
            told["asked_anew"] = rule_command.followed()
            rule_changes.erase(key)
        if options["json"]:
            self.report(told)
        elif options["confirm"]:
            self.say(f"{row.name} is removed.")
        else:
            self.say(
                f"This was a dry run: {row.name} is removed with --confirm. It has decided about "
                f"{counted(row.hits, 'letter')}."
            )
