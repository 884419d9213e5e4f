"""`manage.py add_rule`: make a rule, or change one. It decides nothing before it is enabled."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from reprocessing.domain.routing.first_match import Action
from reprocessing.management.commands.add_dlq import name
from reprocessing.management.console import Console, add_confirm, add_json, add_person, moment, number, whole
from reprocessing.management.output import rule_output
from reprocessing.management.shared import rule_command
from reprocessing.models import Rule
from reprocessing.models.target import FORTNIGHT
from reprocessing.store.routing import rule_changes, rules


class Command(Console):
    """Says what a rule would do, and with --confirm remembers it."""

    help = (
        "Makes a rule, or changes the one of that name: then only what is given is changed. The first enabled rule in "
        "the order of positions whose conditions all hold decides about a letter. Without --confirm it tells what "
        "the rule would do to the letters of the last days."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", type=name, metavar="NAME", help="a name of your own: letters, digits, - _")
        _add_which(parser)
        _add_what(parser)
        parser.add_argument("--position", type=whole(0), metavar="N", help="lower ones are asked first; default: 100")
        parser.add_argument(
            "--from",
            dest="valid_from",
            type=rule_command.or_off(moment),
            metavar="TIME",
            help='holds from then on; "off"',
        )
        parser.add_argument(
            "--until", dest="valid_until", type=rule_command.or_off(moment), metavar="TIME", help='until then; "off"'
        )
        parser.add_argument("--enable", action="store_true", help="it holds at once; see disable_rule")
        rule_command.add_days(parser)
        add_person(parser)
        add_confirm(parser)
        add_json(parser)

    def answer(self, options: dict[str, Any]) -> None:
        known = Rule.objects.filter(name=options["name"]).first()
        fields = rule_command.said_of_rule(options, known)
        row = rule_changes.drafted(options["name"], fields)
        found = rule_changes.differences(options["name"], fields)
        told: dict[str, Any] = {"rule": row.name, "dry_run": not options["confirm"], "new": known is None}
        lines = [f"{row.name}:", *rule_output.changes(found)]
        if options["confirm"]:
            rule_changes.put(row.name, fields, by=options["by"], reason=options["reason"])
            told["asked_anew"] = rule_command.followed()
        else:
            seen = rule_command.look(
                rule_command.with_rule(row), days=options["days"], dlq=row.dlq_id, focus=rules.bound(row).rule.id
            )
            told["preview"] = rule_output.in_json(seen, days=options["days"])
            lines += ["", *rule_output.shares(seen, days=options["days"])]
        if options["json"]:
            changed = [{"field": one.field, "before": one.before, "after": one.after} for one in found]
            self.report({**told, "enabled": row.enabled, "changes": changed})
            return
        self.say(
            "\n".join([*lines, "", last_line(row, new=known is None, acted=options["confirm"], changed=bool(found))])
        )


def last_line(row: Rule, *, new: bool, acted: bool, changed: bool) -> str:
    """What was done."""
    where = row.dlq.name if row.dlq else "every dlq"
    if not new and not changed:
        return f"{row.name} is as it was: nothing to change."
    if not acted:
        return (
            f"This was a dry run: {row.name}, for letters of {where}, is {'made' if new else 'changed'} with --confirm."
        )
    if row.enabled:
        return (
            f"{row.name} is {'made' if new else 'changed'} and enabled: it decides about every letter of {where} whose "
            "turn it is."
        )
    enable = f"manage.py enable_rule {row.name} --reason WHY --confirm"
    return f"{row.name} is {'made' if new else 'changed'}, and decides nothing until: {enable}"


def _add_which(parser: CommandParser) -> None:
    parser.add_argument(
        "--when", action="append", metavar="CONDITION",
        help="FIELD OPERATOR VALUE, as in: tenant equals acme; type in order.paid,order.sent; body:order.total exists; "
        "attribute:source prefix shop-; task regex ^billing\\. Given several times: all must hold. Fields are dlq, "
        "origin, attribute:NAME, body:JMESPATH, type, tenant, task, task:JMESPATH",
    )  # fmt: skip
    parser.add_argument("--every-letter", action="store_true", help="for letters of any content")
    parser.add_argument("--dlq", metavar="NAME", help='for the letters of this dlq alone; "off": of all')


def _add_what(parser: CommandParser) -> None:
    parser.add_argument("--then", choices=[one.value for one in Action], metavar="ACTION", help=", ".join(Action))
    parser.add_argument(
        "--delay", type=number(0, FORTNIGHT, above=True), metavar="SECONDS", help="how long delayed letters rest"
    )
    parser.add_argument(
        "--to", metavar="TARGET", help='where letters go: a queue\'s URL or ARN, or a target that is known; "off"'
    )
    parser.add_argument("--rate-class", metavar="NAME", help='see add_rate_class; "off"')
    rule_command.add_backoff(parser)
