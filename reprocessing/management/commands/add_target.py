"""`manage.py add_target`: where letters may go that is no queue they died in, or what is to change about a target."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.core.management.base import CommandError, CommandParser

from reprocessing import conf
from reprocessing.management.console import Console, add_confirm, add_json, add_person
from reprocessing.management.options.safety_options import add_brakes_of_targets
from reprocessing.management.options.target_policy_options import PACE, REACH, add_outcome, add_reach, said
from reprocessing.management.output import findings_output
from reprocessing.pipeline.dlqs import examine
from reprocessing.pipeline.dlqs.examine import TargetCase
from reprocessing.store.differences import Difference
from reprocessing.store.targets import targets


class Command(Console):
    """Examines a target, says what it would remember and what is wrong, and with --confirm remembers it."""

    help = (
        "Adds a target: the URL of an HTTP endpoint, or the ARN of a Lambda function, an SQS queue, an SNS topic or an "
        "EventBridge bus; or changes one that is known: then only what is given is changed. Sends nothing. Letters go "
        "there when add_dlq --to, or a rule, says so."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("target", metavar="TARGET", help="a URL, an ARN, or the name of one that is known")
        add_reach(parser)
        add_outcome(parser)
        add_brakes_of_targets(parser)
        add_person(parser, reason="add_target")
        add_confirm(parser)
        add_json(parser)

    def answer(self, options: dict[str, Any]) -> None:
        found = examine.target(options["target"], said(options, (*REACH, *PACE)), conf.current())
        changes = targets.differences(found.arn, found.fields, found.row)
        acted = options["confirm"] and not found.is_refused
        if acted:
            changes = targets.put(found.arn, found.fields, by=options["by"], reason=options["reason"])
        if options["json"]:
            told = {"target": found.arn, "kind": found.kind.value, "new": found.row is None, "dry_run": not acted}
            self.report({**told, "refused": found.is_refused, **findings_output.in_json(changes, found.findings)})
        else:
            self.say("\n".join(screen(found, changes)))
        if found.is_refused:
            raise CommandError(f"{found.arn}: nothing was written. Cure what is refused above, and run this again.")
        if not options["json"]:
            self.say(_last_line(found, changes, acted=acted))


def screen(found: TargetCase, changes: list[Difference]) -> Iterable[str]:
    """The examination for people."""
    yield f"{found.arn}: {found.kind.label}"
    yield ""
    yield from findings_output.lines(changes, found.findings, new=found.row is None)


def _last_line(found: TargetCase, changes: list[Difference], *, acted: bool) -> str:
    if not changes:
        return f"{found.arn} is as it was: nothing to change."
    word = "added" if found.row is None else "changed"
    if not acted:
        return f"This was a dry run: {found.arn} is {word} with --confirm."
    if found.row is None:
        say_so = f"manage.py add_dlq NAME --to {found.arn} --confirm"
        return f"{found.arn} is added. Nothing goes there yet: say so with {say_so}, or a rule."
    return f"{found.arn} is changed."
