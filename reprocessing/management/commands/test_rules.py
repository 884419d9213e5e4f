"""`manage.py test_rules`: what rules would do to the letters of the last days. Nothing is changed."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from reprocessing.management.console import Console, add_json, find
from reprocessing.management.output import rule_output
from reprocessing.management.shared import rule_command
from reprocessing.store.routing import rules


class Command(Console):
    """Asks the rules about letters that were captured, and writes nothing."""

    help = (
        "Tells what the rules that hold would do to the letters captured in the last days; with --rule what that one "
        "would, enabled or not, among them."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--rule", metavar="NAME", help="this rule alone")
        parser.add_argument("--dlq", metavar="NAME", help="the letters of this dlq alone")
        rule_command.add_days(parser)
        add_json(parser)

    def answer(self, options: dict[str, Any]) -> None:
        dlq = find(options["dlq"]).pk if options["dlq"] is not None else None
        days, focus = options["days"], None
        if options["rule"] is not None:
            row = rule_command.find_rule(options["rule"])
            some, focus = rule_command.with_rule(row), row.pk
        else:
            some = list(rules.in_force().rules)
        found = rule_command.look(some, days=days, dlq=dlq, focus=focus)
        if options["json"]:
            self.report(rule_output.in_json(found, days=days))
        else:
            self.say("\n".join(rule_output.shares(found, days=days)))
            if not some:
                self.say("No rule holds: manage.py list_rules shows those there are.")
