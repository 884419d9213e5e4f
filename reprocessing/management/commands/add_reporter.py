"""The command `manage.py add_reporter`, which lets a consumer report outcomes of messages over HTTP."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from reprocessing.management.arguments import add_change_options, slug
from reprocessing.management.console import Console
from reprocessing.management.output.findings_output import outcome
from reprocessing.models import Reporter
from reprocessing.store.outcomes import reporters


class Command(Console):
    """Let a consumer report outcomes of messages to POST /reports.

    The consumer may report on messages that were sent to the targets given with --target. Prints the consumer's token
    once; only its digest is stored. If the reporter exists, only the settings whose options are given change.

    Examples:
        add_reporter shop --target orders --confirm
        add_reporter shop --new-token --confirm
    """

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", type=slug, metavar="NAME", help="your name for the consumer: letters, digits, - _")
        parser.add_argument(
            "--target",
            action="append",
            metavar="ARN",
            help="target whose messages the consumer may report on: ARN, URL or name; repeatable",
        )
        parser.add_argument("--new-token", action="store_true", help="create a new token, and revoke the old one")
        add_change_options(parser, reason="add_reporter")

    def answer(self, options: dict[str, Any]) -> None:
        who, anew = options["name"], options["new_token"]
        targets = reporters.resolve_targets(options["target"] or ())
        there = Reporter.objects.filter(name=who).first()
        reporters.check_reporter(there, who, targets, anew=anew)
        result: dict[str, Any] = {
            "reporter": who,
            "dry_run": not options["confirm"],
            "new": there is None,
            "targets": [target.arn for target in targets] or (there and reporters.audit_values(there)["targets"]),
        }
        if options["confirm"]:
            done = reporters.save_reporter(who, targets, anew=anew, by=options["by"], reason=options["reason"])
            result |= {"new": done.new, "token": done.token}
        if options["json"]:
            self.report(result)
            return
        self.say(f"{who} may report outcomes of messages sent to: {', '.join(result['targets'])}")
        self.say(outcome(who, new=result["new"], changed=True, acted=options["confirm"]))
        if result.get("token"):
            self.say(f"Its token, which is not shown again:\n{result['token']}")
