"""`manage.py add_rate_class`: a rate, a backoff and breakers of their own for letters that rules put together."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from reprocessing.management.commands.add_dlq import name
from reprocessing.management.console import Console, add_confirm, add_json, add_person, number
from reprocessing.management.output import rule_output
from reprocessing.management.shared import rule_command
from reprocessing.models import RateClass
from reprocessing.models.target import FASTEST, SLOWEST
from reprocessing.store.routing import rule_changes


class Command(Console):
    """Makes a rate class, or changes one."""

    help = (
        "Makes a rate class, or changes the one of that name: then only what is given is changed. Letters that a rule "
        "puts into it (add_rule --rate-class) draw from its rate, and from their target's."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", type=name, metavar="NAME", help="a name of your own: letters, digits, - _")
        parser.add_argument(
            "--rate", type=rule_command.or_off(number(SLOWEST, FASTEST)), metavar="R",
            help='letters a second, by all workers together; default ("off"): its target\'s rate alone',
        )  # fmt: skip
        parser.add_argument(
            "--burst", type=rule_command.or_off(number(1, FASTEST)), metavar="N",
            help='letters at once; default ("off"): one second of rate',
        )  # fmt: skip
        rule_command.add_backoff(parser)
        add_person(parser)
        add_confirm(parser)
        add_json(parser)

    def answer(self, options: dict[str, Any]) -> None:
        fields = {one: options[one] for one in ("rate", "burst") if options[one] is not None}
        fields = {one: None if value == rule_output.OFF else value for one, value in fields.items()}
        fields |= rule_command.said_of_backoff(options)
        new = not RateClass.objects.filter(name=options["name"]).exists()
        found = rule_changes.differences_of_class(options["name"], fields)
        if options["confirm"]:
            rule_changes.put_class(options["name"], fields, by=options["by"], reason=options["reason"])
        if options["json"]:
            changed = [{"field": one.field, "before": one.before, "after": one.after} for one in found]
            told = {"rate_class": options["name"], "dry_run": not options["confirm"], "new": new}
            self.report({**told, "changes": changed})
            return
        self.say("\n".join([f"{options['name']}:", *rule_output.changes(found)]))
        self.say(_last_line(options["name"], new=new, changed=bool(found), acted=options["confirm"]))


def _last_line(of: str, *, new: bool, changed: bool, acted: bool) -> str:
    if not new and not changed:
        return f"{of} is as it was: nothing to change."
    word = "made" if new else "changed"
    return f"{of} is {word}." if acted else f"This was a dry run: {of} is {word} with --confirm."
