"""The command `manage.py add_rate_class`, which adds or changes a rate class for the messages of some rules."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from reprocessing.management.arguments import OFF, add_change_options, slug
from reprocessing.management.console import Console
from reprocessing.management.options.target_policy_options import add_rate
from reprocessing.management.output import rule_output
from reprocessing.management.output.findings_output import fields_in_json, outcome
from reprocessing.management.shared import rule_command
from reprocessing.models import RateClass
from reprocessing.store.routing import rule_changes


class Command(Console):
    """Add or change a rate class: a rate limit and a backoff for the messages of some rules.

    A rule puts messages into the class (add_rule --rate-class). Both the rate limit of the class and the rate limit of
    the target apply to these messages. The backoff replaces the backoff of the DLQ. If the class exists, only the
    settings whose options are given change.

    Examples:
        add_rate_class bulk --rate 5 --reason "slow partner"
        add_rate_class bulk --backoff-base 120 --reason "slow partner" --confirm
    """

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", type=slug, metavar="NAME", help="name of the rate class: letters, digits, - _")
        add_rate(parser, "off, only the limit of the target")
        rule_command.add_backoff(parser)
        add_change_options(parser)

    def answer(self, options: dict[str, Any]) -> None:
        name = options["name"]
        fields = {field: options[field] for field in ("rate", "burst") if options[field] is not None}
        fields = {field: None if value == OFF else value for field, value in fields.items()}
        fields |= rule_command.backoff_fields(options)
        new = not RateClass.objects.filter(name=name).exists()
        found = rule_changes.differences_of_class(name, fields)
        if options["confirm"]:
            rule_changes.save_rate_class(name, fields, by=options["by"], reason=options["reason"])
        if options["json"]:
            result = {"rate_class": name, "dry_run": not options["confirm"], "new": new}
            self.report({**result, "changes": fields_in_json(found)})
            return
        last = outcome(name, new=new, changed=bool(found), acted=options["confirm"])
        self.say("\n".join([f"{name}:", *rule_output.changes(found), last]))
