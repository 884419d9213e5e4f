"""How rules and rate classes are made, changed, enabled, disabled and removed, each with who and why.

Whatever changes which rules hold raises the rulebook's version in the same transaction; the door that asked wakes what
the rules of before stopped, once that is committed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import Model

from reprocessing.domain.errors import RuleIsUnclear
from reprocessing.models.audit import Act, Review
from reprocessing.models.dlq import DeadLetterQueue
from reprocessing.models.rule import Rule
from reprocessing.models.safety import RateClass
from reprocessing.models.target import Target
from reprocessing.store import rows
from reprocessing.store.differences import Difference
from reprocessing.store.routing import rules

Fields = Mapping[str, Any]

#: What a rule says, by the names of its columns.
FIELDS = (
    "position", "enabled", "dlq", "conditions", "action", "delay", "target", "rate_class", "backoff_base",
    "backoff_cap", "backoff_jitter", "valid_from", "valid_until",
)  # fmt: skip

_FORGET = """
UPDATE redrive_letter SET rule_id = NULL
 WHERE id IN (SELECT id FROM redrive_letter WHERE rule_id = %(rule)b ORDER BY id LIMIT 1000 FOR UPDATE)
"""


@dataclass(frozen=True, slots=True)
class Amended:
    """What was done. `new`: there was none of this name; no differences: nothing was to be done."""

    id: int
    new: bool
    differences: list[Difference] = field(default_factory=list)


def drafted(name: str, fields: Fields) -> Rule:
    """The rule as it would be with these fields: of an existing one, the others stay. It is not saved.

    Raises:
        RuleIsUnclear: such a rule could not be asked.
    """
    found = Rule.objects.select_related("dlq", "target", "rate_class").filter(name=name).first()
    row = Rule(name=name, position=100, enabled=False, conditions=[]) if found is None else found
    for one, value in fields.items():
        setattr(row, one, value)
    check(row)
    return row


def differences(name: str, fields: Fields) -> list[Difference]:
    """What these fields would change; of a rule that is not there, everything that they say."""
    row = Rule.objects.select_related("dlq", "target", "rate_class").filter(name=name).first()
    return [
        Difference(name, one, None if row is None else plain(getattr(row, one)), plain(value))
        for one, value in fields.items()
        if row is None or plain(getattr(row, one)) != plain(value)
    ]


def put(name: str, fields: Fields, *, by: str, reason: str) -> Amended:
    """Make the rule of this name, or change what the fields say otherwise.

    A target that is not known yet is remembered with it.

    Raises:
        RuleIsUnclear: such a rule could not be asked.
    """
    with transaction.atomic():
        rules.lock()
        changes = differences(name, fields)
        row = drafted(name, fields)
        new = row._state.adding  # noqa: SLF001 - Django's own word for it
        if not changes and not new:
            return Amended(row.pk, new=False)
        if row.target is not None:
            row.target = _known(row.target)
        if new:
            row.made_by = by
            row.save(force_insert=True)
        else:
            Rule.objects.filter(pk=row.pk).update(
                **{one.field: getattr(row, one.field) for one in changes}, trouble="", errs=0
            )
        _record(row, Act.ADDED if new else Act.CHANGED, changes, by, reason)
        rules.bump()
        return Amended(row.pk, new, changes)


def switch(rule: int, *, enabled: bool, by: str, reason: str) -> bool:
    """Enable or disable a rule; whether it was not so already.

    Raises:
        Rule.DoesNotExist: it was removed.
        RuleIsUnclear: it is to be enabled, and could not be asked.
    """
    with transaction.atomic():
        rules.lock()
        row = Rule.objects.get(pk=rule)
        if row.enabled == enabled:
            return False
        if enabled:
            check(row)
        Rule.objects.filter(pk=rule).update(enabled=enabled)
        _record(row, Act.CHANGED, [Difference(row.name, "enabled", not enabled, enabled)], by, reason)
        rules.bump()
        return True


def remove(rule: int, *, by: str, reason: str) -> None:
    """End a rule for good: from the commit on it decides nothing. `erase` takes its row away, after the waking."""
    with transaction.atomic():
        rules.lock()
        row = Rule.objects.select_related("dlq", "target", "rate_class").get(pk=rule)
        Rule.objects.filter(pk=rule).update(enabled=False)
        said = [Difference(row.name, one, plain(getattr(row, one)), None) for one in FIELDS]
        _record(row, Act.CHANGED, [*said, Difference(row.name, "name", row.name, None)], by, reason)
        rules.bump()


def erase(rule: int) -> None:
    """Forget the row of a rule that was removed, and which letters it decided; group by group."""
    while rows.execute(_FORGET, {"rule": rule}):
        pass
    rows.whole(partial(_erase, rule))


def _erase(rule: int) -> None:
    Rule.objects.select_for_update().filter(pk=rule, enabled=False).first()
    rows.execute("UPDATE redrive_letter SET rule_id = NULL WHERE rule_id = %(rule)b", {"rule": rule})
    Rule.objects.filter(pk=rule, enabled=False).delete()


def put_class(name: str, fields: Fields, *, by: str, reason: str) -> Amended:
    """Make the rate class of this name, or change what the fields say otherwise. No letter is asked anew for that."""
    with transaction.atomic():
        rules.lock()
        changes = differences_of_class(name, fields)
        row, new = RateClass.objects.get_or_create(name=name)
        if changes or new:
            RateClass.objects.filter(pk=row.pk).update(**dict(fields))
            Review.objects.create(
                act=Act.ADDED if new else Act.CHANGED, by=by, reason=reason,
                before={"rate class": name} | ({} if new else {one.field: one.before for one in changes}),
                after={"rate class": name} | {one.field: one.after for one in changes},
            )  # fmt: skip
        return Amended(row.pk, new, changes)


def differences_of_class(name: str, fields: Fields) -> list[Difference]:
    """What these fields would change of a rate class; of one that is not there, everything that they say."""
    row = RateClass.objects.filter(name=name).first()
    return [
        Difference(name, one, None if row is None else getattr(row, one), value)
        for one, value in fields.items()
        if row is None or getattr(row, one) != value
    ]


def plain(value: object) -> Any:  # noqa: ANN401 - a value of any column, as a review holds it
    """A column's value as JSON has it."""
    match value:
        case datetime():
            return value.isoformat()
        case Target():
            return value.arn
        case Model():
            return str(value)
        case list():
            return list(value)
        case _:
            return value


def check(row: Rule) -> None:
    """See whether a rule can be asked, and what it says be done.

    Raises:
        RuleIsUnclear: it cannot; the message says why, and what to write.
    """
    rules.read(row)
    watched = row.target and DeadLetterQueue.objects.filter(arn=row.target.arn).first()
    if watched:
        raise RuleIsUnclear(
            f'Rule "{row.name}" is unclear: {row.target} is watched, as {watched.name}: what is sent there would be '
            "captured as having failed. Name a queue that is not watched."
        )
    if row.valid_from and row.valid_until and row.valid_until <= row.valid_from:
        raise RuleIsUnclear(f'Rule "{row.name}" is unclear: it ends before it begins. Give it a later end.')
    backoff = (row.backoff_base, row.backoff_cap, row.backoff_jitter)
    if any(one is None for one in backoff) and any(one is not None for one in backoff):
        raise RuleIsUnclear(f'Rule "{row.name}" is unclear: a backoff has a base, a cap and a jitter. Give all three.')


def _known(target: Target) -> Target:
    """The target, with a row."""
    if target._state.adding:  # noqa: SLF001 - as above
        known = Target.objects.filter(arn=target.arn).first()
        if known is not None:
            return known
        target.save(force_insert=True)
    return target


def _record(row: Rule, act: Act, changes: list[Difference], by: str, reason: str) -> None:
    Review.objects.create(
        act=act, rule=row, dlq=row.dlq, by=by, reason=reason,
        before={"rule": row.name} | ({} if act is Act.ADDED else {one.field: one.before for one in changes}),
        after={"rule": row.name} | {one.field: one.after for one in changes},
    )  # fmt: skip
