"""`manage.py list_rules`: every rule in the order in which they are asked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.core.management.base import CommandParser

from reprocessing.management.console import Console, add_json, when
from reprocessing.management.output.drain_output import counted
from reprocessing.models import RateClass, Rule
from reprocessing.store.routing import rules
from reprocessing.store.routing.rule_changes import FIELDS, plain


class Command(Console):
    """Lists rules and rate classes; changes nothing."""

    help = "Lists every rule in the order in which they are asked, with what it has decided, and the rate classes."

    def add_arguments(self, parser: CommandParser) -> None:
        add_json(parser)

    def answer(self, options: dict[str, Any]) -> None:
        found = list(Rule.objects.select_related("dlq", "target", "rate_class").order_by("position", "id"))
        holding = {one.rule.id for one in rules.in_force().rules}
        classes = list(RateClass.objects.order_by("name"))
        if options["json"]:
            self.report({
                "version": rules.version(),
                "rules": [_of_rule(one, holds=one.pk in holding) for one in found],
                "rate_classes": [_of_class(one) for one in classes],
            })  # fmt: skip
            return
        self.say(
            "\n".join(line for one in found for line in _told(one, holds=one.pk in holding)) or "There are no rules."
        )
        for one in classes:
            rate = "its target's rate" if one.rate is None else f"{one.rate:g} letters/s"
            self.say(f"rate class {one.name}: {rate}")


def _of_rule(row: Rule, *, holds: bool) -> dict[str, Any]:
    said = {one: plain(getattr(row, one)) for one in FIELDS}
    counts = {"hits": row.hits, "errs": row.errs, "last_hit_at": row.last_hit_at, "trouble": row.trouble or None}
    return {"name": row.name, "holds": holds, **said, **counts, "made_by": row.made_by}


def _of_class(row: RateClass) -> dict[str, Any]:
    fields = ("name", "rate", "burst", "backoff_base", "backoff_cap", "backoff_jitter")
    return {one: getattr(row, one) for one in fields}


def _told(row: Rule, *, holds: bool) -> Iterable[str]:
    standing = "holds" if holds else ("enabled, but not now" if row.enabled else "disabled")
    where = f", of {row.dlq}" if row.dlq else ", of every dlq"
    yield f"{row.position:>4}  {row.name} ({standing}{where})"
    yield f"      when  {' and '.join(str(one) for one in row.conditions) or 'every letter'}"
    yield f"      then  {in_words(row)}"
    begins = f"from {when(row.valid_from)}" if row.valid_from else ""
    ends = f"until {when(row.valid_until)}" if row.valid_until else ""
    if begins or ends:
        yield f"      {' '.join(filter(None, [begins, ends]))}"
    last = f", the last at {when(row.last_hit_at)}" if row.last_hit_at else ""
    yield f"      decided about {counted(row.hits, 'letter')}{last}"
    if row.errs:
        yield f"      could not be asked about {counted(row.errs, 'letter')}: {row.trouble}"


def in_words(row: Rule) -> str:
    """What becomes of its letters."""
    parts = [str(row.action)]
    if row.delay is not None:
        parts.append(f"for {row.delay:g} s")
    if row.target:
        parts.append(f"to {row.target}")
    if row.rate_class:
        parts.append(f"in class {row.rate_class}")
    if row.backoff_base is not None:
        parts.append(f"with a backoff of {row.backoff_base:g} s up to {row.backoff_cap:g} s")
    return " ".join(parts)
