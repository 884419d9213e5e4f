"""`manage.py add_reporter`: a consumer may say what became of the letters that were sent to it."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from reprocessing.management.commands.add_dlq import name
from reprocessing.management.console import Console, add_confirm, add_json, add_person
from reprocessing.models import Reporter
from reprocessing.store.outcomes import reporters


class Command(Console):
    """Adds a reporter, or changes one."""

    help = (
        "Lets a consumer report what became of letters (POST /reports), of the targets that are named alone. Its token "
        "is printed once, and kept nowhere. Of a reporter that is there, what is given is changed."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", type=name, metavar="NAME", help="a name of your own: letters, digits, - _")
        parser.add_argument(
            "--target", action="append", metavar="ARN",
            help="whose letters it speaks of: the ARN or URL of a target, or its name; may be given several times",
        )  # fmt: skip
        parser.add_argument("--new-token", action="store_true", help="give it another token; the old one is void")
        add_person(parser, reason="add_reporter")
        add_confirm(parser)
        add_json(parser)

    def answer(self, options: dict[str, Any]) -> None:
        who, anew = options["name"], options["new_token"]
        targets = reporters.targets(options["target"] or ())
        there = Reporter.objects.filter(name=who).first()
        reporters.check(there, who, targets, anew=anew)
        told: dict[str, Any] = {
            "reporter": who,
            "dry_run": not options["confirm"],
            "new": there is None,
            "targets": [one.arn for one in targets] or (there and reporters.told(there)["targets"]),
        }
        if options["confirm"]:
            done = reporters.put(who, targets, anew=anew, by=options["by"], reason=options["reason"])
            told |= {"new": done.new, "token": done.token}
        if options["json"]:
            self.report(told)
            return
        self.say(f"{who} speaks of letters sent to: {', '.join(told['targets'])}")
        word = "added" if told["new"] else "changed"
        if not options["confirm"]:
            self.say(f"This was a dry run: {who} is {word} with --confirm.")
            return
        self.say(f"{who} is {word}.")
        if told["token"]:
            self.say(f"Its token, which is not shown again:\n{told['token']}")
