"""The base class of enable_rule and disable_rule."""

from __future__ import annotations

from typing import Any, ClassVar

from django.core.management.base import CommandParser

from reprocessing.management.arguments import add_change_options
from reprocessing.management.console import Console
from reprocessing.management.shared import rule_command
from reprocessing.models import Rule
from reprocessing.store.routing import rule_changes


class SwitchCommand(Console):
    """A command that enables or disables a rule. A dry run shows what the rule would do to captured messages."""

    enables: ClassVar[bool]

    def add_arguments(self, parser: CommandParser) -> None:  # noqa: D102  Django's own
        parser.add_argument("name", metavar="NAME", help="name of the rule")
        rule_command.add_days(parser)
        add_change_options(parser)

    def answer(self, options: dict[str, Any]) -> None:  # noqa: D102  the base's own
        row = rule_command.find_rule(options["name"])
        result: dict[str, Any] = {"rule": row.name, "dry_run": not options["confirm"]}
        lines: list[str] = []
        was = row.enabled
        if options["confirm"]:
            rule_changes.set_enabled(row.pk, enabled=self.enables, by=options["by"], reason=options["reason"])
            result["asked_anew"] = rule_command.reroute_held()
        else:
            preview, lines = rule_command.preview_of(row, days=options["days"])
            result |= preview
        said, more = self.follow_up(row, options)
        if options["json"]:
            self.report({**result, **said, "enabled": self.enables if options["confirm"] else was})
        else:
            self.say("\n".join([*lines, *more, self._last_line(row, was=was, acted=options["confirm"])]))

    def follow_up(self, row: Rule, options: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:  # noqa: ARG002
        """Handle messages that the rule parked, and return what was done as JSON and as lines of text.

        Commands that do nothing with these messages do not implement this.
        """
        return {}, []

    def _last_line(self, row: Rule, *, was: bool, acted: bool) -> str:
        state = "enabled" if self.enables else "disabled"
        if was == self.enables:
            return f"{row.name} was {state} already: nothing to change."
        return f"{row.name} is {state}." if acted else f"This was a dry run: {row.name} is {state} with --confirm."
