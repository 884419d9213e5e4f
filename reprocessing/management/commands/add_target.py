"""The command `manage.py add_target`, which adds or changes a target."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.core.management.base import CommandError, CommandParser

from reprocessing import conf
from reprocessing.management.arguments import add_change_options
from reprocessing.management.console import Console
from reprocessing.management.options.safety_options import add_target_safety
from reprocessing.management.options.target_policy_options import (
    CONNECTION_FIELDS,
    RATE_FIELDS,
    add_connection,
    add_outcome,
    given_fields,
)
from reprocessing.management.output import findings_output
from reprocessing.management.output.findings_output import outcome
from reprocessing.pipeline.dlqs import examine
from reprocessing.pipeline.dlqs.examine import TargetCase
from reprocessing.store.proposed_changes import Difference
from reprocessing.store.targets import targets


class Command(Console):
    """Add or change a target: an HTTP endpoint, Lambda function, SQS queue, SNS topic or EventBridge bus.

    Sends nothing. Messages go to the target only after add_dlq --to or a rule names it. If the target exists, only the
    settings whose options are given change.

    Examples:
        add_target https://shop.example.com/orders --secret shop --timeout 10
        add_target arn:aws:lambda:eu-west-1:111122223333:function:orders --rate 5 --confirm
    """

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "target", metavar="TARGET", help="URL or ARN of the target, or name of a target that was added before"
        )
        add_connection(parser)
        add_outcome(parser)
        add_target_safety(parser)
        add_change_options(parser, reason="add_target")

    def answer(self, options: dict[str, Any]) -> None:
        found = examine.target(
            options["target"], given_fields(options, (*CONNECTION_FIELDS, *RATE_FIELDS)), conf.current()
        )
        changes = targets.differences(found.arn, found.fields, found.row)
        acted = options["confirm"] and not found.is_refused
        if acted:
            changes = targets.save_target(found.arn, found.fields, by=options["by"], reason=options["reason"])
        if options["json"]:
            result = {"target": found.arn, "kind": found.kind.value, "new": found.row is None, "dry_run": not acted}
            self.report({**result, "refused": found.is_refused, **findings_output.in_json(changes, found.findings)})
        else:
            self.say("\n".join(screen(found, changes)))
        if found.is_refused:
            raise CommandError(f"{found.arn}: nothing was saved. Fix what REFUSE marks above, then run this again.")
        if not options["json"]:
            self.say(_last_line(found, changes, acted=acted))


def screen(found: TargetCase, changes: list[Difference]) -> Iterable[str]:
    """Yield the lines to print: the target, the changed settings and the problems."""
    yield f"{found.arn}: {found.kind.label}"
    yield ""
    yield from findings_output.lines(changes, found.findings, new=found.row is None)


def _last_line(found: TargetCase, changes: list[Difference], *, acted: bool) -> str:
    result = outcome(found.arn, new=found.row is None, changed=bool(changes), acted=acted)
    if not acted or found.row:
        return result
    return f"{result} No messages go there yet. Use it in a rule, or: manage.py add_dlq NAME --to {found.arn} --confirm"
