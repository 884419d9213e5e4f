"""The command `manage.py add_rule`, which adds or changes a rule."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from reprocessing.domain.routing.first_match import Action
from reprocessing.management.arguments import add_change_options, iso_time, number, or_off, slug, whole_number
from reprocessing.management.console import Console
from reprocessing.management.output import rule_output
from reprocessing.management.output.findings_output import fields_in_json, outcome
from reprocessing.management.shared import rule_command
from reprocessing.models import Rule
from reprocessing.models.target import MAX_SECONDS
from reprocessing.store.routing import rule_changes


class Command(Console):
    """Add or change a rule.

    Rules are evaluated in order of their positions. The first enabled rule whose conditions all match a message
    decides. Without --confirm, shows what the rule would do to recently captured messages. A new rule is disabled
    unless --enable is given.

    Examples:
        add_rule hold-acme --when "tenant equals acme" --then hold --reason "acme is migrating"
        add_rule refunds --when "type in order.refund" --then divert --to refunds --reason INC-7 --confirm
    """

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", type=slug, metavar="NAME", help="name of the rule: letters, digits, - _")
        _add_conditions(parser)
        _add_action(parser)
        parser.add_argument(
            "--position",
            type=whole_number(0),
            metavar="N",
            help="position of the rule: rules with lower positions are evaluated first (default: 100)",
        )
        for option, what in (("from", "start"), ("until", "end")):
            parser.add_argument(
                f"--{option}", dest=f"valid_{option}", type=or_off(iso_time), metavar="TIME",
                help=f"{what} of the time in which the rule can match messages (ISO 8601), or off for no {what} "
                "(default: off)",
            )  # fmt: skip
        parser.add_argument(
            "--enable", action="store_true", help="enable the rule (to disable a rule, use disable_rule)"
        )
        rule_command.add_days(parser)
        add_change_options(parser)

    def answer(self, options: dict[str, Any]) -> None:
        known = Rule.objects.filter(name=options["name"]).first()
        fields = rule_command.rule_fields(options, known)
        row = rule_changes.draft_rule(options["name"], fields)
        found = rule_changes.differences(options["name"], fields)
        result: dict[str, Any] = {"rule": row.name, "dry_run": not options["confirm"], "new": known is None}
        lines = [f"{row.name}:", *rule_output.changes(found)]
        if options["confirm"]:
            rule_changes.save_rule(row.name, fields, by=options["by"], reason=options["reason"])
            result["asked_anew"] = rule_command.reroute_held()
        else:
            preview, shares = rule_command.preview_of(row, days=options["days"])
            result |= preview
            lines += ["", *shares]
        if options["json"]:
            self.report({**result, "enabled": row.enabled, "changes": fields_in_json(found)})
        else:
            last = last_line(row, new=known is None, acted=options["confirm"], changed=bool(found))
            self.say("\n".join([*lines, "", last]))


def last_line(row: Rule, *, new: bool, acted: bool, changed: bool) -> str:
    """Return a sentence about what was done with the rule or, in a dry run, would be done, and about the next step."""
    where = row.dlq.name if row.dlq else "every DLQ"
    name = row.name if acted or not (new or changed) else f"{row.name}, for messages of {where},"
    result = outcome(name, new=new, changed=changed, acted=acted)
    if not acted or not (new or changed):
        return result
    if row.enabled:
        return f"{result} It is enabled, and decides about messages of {where}."
    return f"{result} It is disabled. To enable it: manage.py enable_rule {row.name} --reason WHY --confirm"


def _add_conditions(parser: CommandParser) -> None:
    parser.add_argument(
        "--when", action="append", metavar="CONDITION",
        help="condition that messages must match, as FIELD OPERATOR VALUE; repeatable: all must match. FIELD: dlq or "
        "source (name of the queue), attribute:NAME, body:JMESPATH, type or tenant (add_dlq --message-type and "
        "--tenant say where messages have them), task (name of a Celery task), task:JMESPATH (another value of the "
        "task, such as task:kwargs.order). OPERATOR: equals, in, prefix, exists (without VALUE), regex. Examples: "
        "tenant equals acme; type in order.paid,order.sent; body:order.total exists; attribute:source prefix shop-; "
        "task regex ^billing\\.",
    )  # fmt: skip
    parser.add_argument(
        "--every-message", action="store_true", help="match every message; not possible together with --when"
    )
    parser.add_argument(
        "--dlq", metavar="NAME", help="match only messages of this DLQ, or off for messages of all DLQs (default: off)"
    )


def _add_action(parser: CommandParser) -> None:
    parser.add_argument(
        "--then", choices=[action.value for action in Action], metavar="ACTION",
        help="what to do with matching messages. replay: send them; delay: send them after --delay; divert: send them "
        "to --to; quarantine: park them; discard: never send them; hold: do not send them until the rule is changed, "
        "disabled or has ended",
    )  # fmt: skip
    parser.add_argument(
        "--delay",
        type=number(0, MAX_SECONDS, above=True),
        metavar="SECONDS",
        help="with --then delay: seconds that a matching message waits before it is sent",
    )
    parser.add_argument(
        "--to",
        metavar="TARGET",
        help="with --then replay or divert: target to which matching messages are sent: "
        "name of a target, URL or ARN of a queue, or off for the DLQ's own target",
    )
    parser.add_argument(
        "--rate-class",
        metavar="NAME",
        help="with --then replay or delay: send matching messages within the rate limit of this rate class (see "
        "add_rate_class), or off for no rate class",
    )
    rule_command.add_backoff(parser)
