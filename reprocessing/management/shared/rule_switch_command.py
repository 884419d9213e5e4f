"""What enable_rule and disable_rule share."""

from __future__ import annotations

from typing import Any, ClassVar

from django.core.management.base import CommandParser

from reprocessing.management.console import Console, add_confirm, add_json, add_person
from reprocessing.management.output import rule_output
from reprocessing.management.shared import rule_command
from reprocessing.models import Rule
from reprocessing.store.routing import rule_changes, rules


class SwitchCommand(Console):
    """A rule that begins, or ceases, to decide."""

    enables: ClassVar[bool]

    def add_arguments(self, parser: CommandParser) -> None:  # noqa: D102  Django's own
        parser.add_argument("name", metavar="NAME", help="the rule's name")
        rule_command.add_days(parser)
        add_person(parser)
        add_confirm(parser)
        add_json(parser)

    def answer(self, options: dict[str, Any]) -> None:  # noqa: D102  the base's own
        row = rule_command.find_rule(options["name"])
        told: dict[str, Any] = {"rule": row.name, "dry_run": not options["confirm"]}
        lines: list[str] = []
        was = row.enabled
        if options["confirm"]:
            rule_changes.switch(row.pk, enabled=self.enables, by=options["by"], reason=options["reason"])
            told["asked_anew"] = rule_command.followed()
        else:
            seen = rule_command.look(
                rule_command.with_rule(row), days=options["days"], dlq=row.dlq_id, focus=rules.bound(row).rule.id
            )
            told["preview"] = rule_output.in_json(seen, days=options["days"])
            lines += rule_output.shares(seen, days=options["days"])
        said, more = self.after(row, options)
        lines += [*more, self.last_line(row, was=was, acted=options["confirm"])]
        if options["json"]:
            self.report({**told, **said, "enabled": self.enables if options["confirm"] else was})
        else:
            self.say("\n".join(lines))

    def after(self, row: Rule, options: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
        """What else follows, for programs and for people."""
        raise NotImplementedError

    def last_line(self, row: Rule, *, was: bool, acted: bool) -> str:
        """What was done."""
        word = "enabled" if self.enables else "disabled"
        if was == self.enables:
            return f"{row.name} was {word} already: nothing to change."
        return f"{row.name} is {word}." if acted else f"This was a dry run: {row.name} is {word} with --confirm."
