"""The command `manage.py list_rules`, which lists the rules and the rate classes."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from reprocessing.management.arguments import add_json
from reprocessing.management.console import Console, format_time
from reprocessing.management.output.drain_output import counted
from reprocessing.models import RateClass, Rule
from reprocessing.store.routing import rules
from reprocessing.store.routing.rule_changes import FIELDS
from reprocessing.store.routing.rule_fields import as_json

_HEADER = ("position", "rule", "state", "DLQ", "when", "then", "decided")
_CLASS_FIELDS = ("name", "rate", "burst", "backoff_base", "backoff_cap", "backoff_jitter")


class Command(Console):
    """List the rules in order of evaluation, and the rate classes.

    Shows for each rule whether it is in force (enabled, and within its time), and how many messages it has decided
    about.

    Examples:
        list_rules
        list_rules --json
    """

    def add_arguments(self, parser: CommandParser) -> None:
        add_json(parser)

    def answer(self, options: dict[str, Any]) -> None:
        found = list(Rule.objects.select_related("dlq", "target", "rate_class").order_by("position", "id"))
        holding = {bound.rule.id for bound in rules.in_force().rules}
        classes = list(RateClass.objects.order_by("name"))
        if options["json"]:
            self.report({
                "version": rules.version(),
                "rules": [_rule_in_json(rule, holds=rule.pk in holding) for rule in found],
                "rate_classes": [{field: getattr(one, field) for field in _CLASS_FIELDS} for one in classes],
            })  # fmt: skip
            return
        if found:
            self.table(_HEADER, [_cells(rule, holds=rule.pk in holding) for rule in found])
        else:
            self.say("There are no rules.")
        for rule in found:
            if rule.error_count:
                self.say(f"{rule.name} could not evaluate {counted(rule.error_count, 'message')}: {rule.last_error}")
        if classes:
            self.say()
            self.table(["rate class", "rate"], [[one.name, _rate(one)] for one in classes])


def _rule_in_json(rule: Rule, *, holds: bool) -> dict[str, Any]:
    said = {field: as_json(getattr(rule, field)) for field in FIELDS}
    counts = {
        "match_count": rule.match_count,
        "error_count": rule.error_count,
        "last_hit_at": rule.last_hit_at,
        "last_error": rule.last_error or None,
    }
    return {"name": rule.name, "holds": holds, **said, **counts, "created_by": rule.created_by}


def _cells(rule: Rule, *, holds: bool) -> list[str]:
    state = "in force" if holds else ("enabled, not in force now" if rule.enabled else "disabled")
    begins = f" from {format_time(rule.valid_from)}" if rule.valid_from else ""
    ends = f" until {format_time(rule.valid_until)}" if rule.valid_until else ""
    conditions = " and ".join(map(str, rule.conditions)) or "every message"
    decided = f"{rule.match_count:,}" + (f", last {format_time(rule.last_hit_at)}" if rule.last_hit_at else "")
    dlq = rule.dlq.name if rule.dlq else "all"
    return [f"{rule.position}", rule.name, f"{state}{begins}{ends}", dlq, conditions, _action(rule), decided]


def _rate(rate_class: RateClass) -> str:
    return "rate of its target" if rate_class.rate is None else f"{rate_class.rate:g} messages/s"


def _action(rule: Rule) -> str:
    parts = [str(rule.action)]
    if rule.delay is not None:
        parts.append(f"for {rule.delay:g} s")
    if rule.target:
        parts.append(f"to {rule.target}")
    if rule.rate_class:
        parts.append(f"in class {rule.rate_class}")
    if rule.backoff_base is not None:
        parts.append(f"with a backoff of {rule.backoff_base:g} s up to {rule.backoff_cap:g} s")
    return " ".join(parts)
