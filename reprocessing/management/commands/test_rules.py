"""The command `manage.py test_rules`, which shows what the rules would do to recently captured messages."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from reprocessing.management.arguments import add_json
from reprocessing.management.console import Console, find_dlq
from reprocessing.management.output import rule_output
from reprocessing.management.shared import rule_command
from reprocessing.store.routing import rules


class Command(Console):
    """Show what the enabled rules would do to recently captured messages.

    With --rule, shows what only this rule would do, even if it is disabled. Changes nothing, and sends no messages.

    Examples:
        test_rules --dlq orders --days 30
        test_rules --rule hold-acme
    """

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--rule", metavar="NAME", help="evaluate only this rule")
        parser.add_argument("--dlq", metavar="NAME", help="evaluate only messages of this DLQ")
        rule_command.add_days(parser)
        add_json(parser)

    def answer(self, options: dict[str, Any]) -> None:
        dlq = find_dlq(options["dlq"]).pk if options["dlq"] is not None else None
        days, focus = options["days"], None
        if options["rule"] is not None:
            row = rule_command.find_rule(options["rule"])
            some, focus = rule_command.rules_with(row), row.pk
        else:
            some = list(rules.in_force().rules)
        found = rule_command.preview_rules(some, days=days, dlq=dlq, focus=focus)
        if options["json"]:
            self.report(rule_output.in_json(found, days=days))
        else:
            self.say("\n".join(rule_output.preview_lines(found, days=days)))
            if not some:
                self.say("No rule is in force. To see all rules: manage.py list_rules")
