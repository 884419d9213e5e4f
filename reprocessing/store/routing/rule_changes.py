"""Add, change, enable, disable and remove rules and rate classes, each with an audit log entry.

A change of a rule raises the rulebook's version (a number) in the same transaction. After the commit, the caller
reschedules the letters that the former rules held or delayed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import Model

from reprocessing.domain.approvals.requested_action import ALL, ActionKind, RequestedAction
from reprocessing.domain.errors import InvalidRule
from reprocessing.models.audit import AuditAct, AuditEntry
from reprocessing.models.dlq import DeadLetterQueue
from reprocessing.models.rule import Rule
from reprocessing.models.safety import RateClass
from reprocessing.models.target import Target
from reprocessing.store import rows
from reprocessing.store.approvals import guard
from reprocessing.store.approvals.guard import Cover
from reprocessing.store.proposed_changes import Difference, Fields, changed_fields
from reprocessing.store.routing import rule_fields, rules
from reprocessing.store.routing.rule_fields import as_json

#: The columns of a rule that people set.
FIELDS = (
    "position", "enabled", "dlq", "conditions", "action", "delay", "target", "rate_class", "backoff_base",
    "backoff_cap", "backoff_jitter", "valid_from", "valid_until",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class RuleChange:
    """The result of saving a rule or rate class. `new`: it was created. `differences` empty: nothing was changed."""

    id: int
    new: bool
    differences: list[Difference] = field(default_factory=list)


def draft_rule(name: str, fields: Fields) -> Rule:
    """Return the rule with these fields, without saving it. If the rule exists, its other fields are unchanged.

    Raises InvalidRule if the rule could not be evaluated or applied.
    """
    row = find_rule(name) or Rule(name=name, position=100, enabled=False, conditions=[])
    for column, value in fields.items():
        setattr(row, column, value)
    check(row)
    return row


def find_rule(name: str) -> Rule | None:
    """Return the stored rule with this name; None: there is none."""
    return Rule.objects.select_related("dlq", "target", "rate_class").filter(name=name).first()


def differences(name: str, fields: Fields) -> list[Difference]:
    """Return the fields of the rule that would change; if the rule does not exist, return all fields."""
    return _differences(name, find_rule(name), fields)


def _differences(name: str, row: Model | None, fields: Fields) -> list[Difference]:
    now = {} if row is None else {column: as_json(getattr(row, column)) for column in fields}
    return changed_fields(name, now, {column: as_json(value) for column, value in fields.items()})


def save_rule(name: str, fields: Fields, *, by: str, reason: str, approval: Cover = None) -> RuleChange:
    """Create the rule, or change it; if its target is new, also save the target.

    If the rule is disabled before and after the change, no second person is needed, because the rule affects no
    message. `approval`: the id of a second person's approval; None: the person `by` acts alone. `apply_config` passes a
    `guard.Parts`, in which it collects the changes that need a second person.

    Raises:
        InvalidRule: the rule could not be evaluated or applied.
        ApprovalNeeded: a second person is needed.
    """
    with transaction.atomic():
        rules.lock()
        changes = differences(name, fields)
        row, was = draft_rule(name, fields), find_rule(name)
        new = row._state.adding  # noqa: SLF001 - Django's own word for it
        if not changes and not new:
            return RuleChange(row.pk, new=False)
        if row.enabled or (was and was.enabled):
            arguments = {"fields": rule_fields.write(fields), "differences": _as_lists(changes)}
            _check_approval(ActionKind.SAVE_RULE, row, arguments, by=by, approval=approval, before=was)
        if row.target is not None:
            row.target = _stored_target(row.target)
        if new:
            row.created_by = by
            row.save(force_insert=True)
        else:
            Rule.objects.filter(pk=row.pk).update(
                **{change.field: getattr(row, change.field) for change in changes}, last_error="", error_count=0
            )
        _record(row, changes, by, reason, new=new)
        rules.raise_version()
        return RuleChange(row.pk, new, changes)


def set_enabled(rule: int, *, enabled: bool, by: str, reason: str, approval: Cover = None) -> bool:
    """Enable or disable a rule; return whether it changed. `approval`: see `save_rule`.

    Raises ApprovalNeeded if a second person is needed, InvalidRule if a rule to enable could not be evaluated or
    applied.
    """
    with transaction.atomic():
        rules.lock()
        row = Rule.objects.get(pk=rule)
        if row.enabled == enabled:
            return False
        if enabled:
            check(row)
        _check_approval(ActionKind.SWITCH_RULE, row, {"rule": rule, "enabled": enabled}, by=by, approval=approval)
        Rule.objects.filter(pk=rule).update(enabled=enabled)
        _record(row, [Difference(row.name, "enabled", not enabled, enabled)], by, reason)
        rules.raise_version()
        return True


def remove(rule: int, *, by: str, reason: str, approval: Cover = None) -> None:
    """Disable a rule that will be deleted.

    After the commit, the caller lets other rules decide about the rule's letters, and calls `erase`. Raises
    ApprovalNeeded if a second person is needed. One person may remove a rule that is not enabled.
    """
    with transaction.atomic():
        rules.lock()
        row = Rule.objects.select_related("dlq", "target", "rate_class").get(pk=rule)
        if row.enabled:
            _check_approval(ActionKind.REMOVE_RULE, row, {"rule": rule}, by=by, approval=approval)
        Rule.objects.filter(pk=rule).update(enabled=False)
        before = [Difference(row.name, column, as_json(getattr(row, column)), None) for column in FIELDS]
        _record(row, [*before, Difference(row.name, "name", row.name, None)], by, reason)
        rules.raise_version()


def erase(rule: int) -> None:
    """Delete a rule that `remove` disabled. Its letters keep its id: there may be millions."""
    rows.in_transaction(partial(_erase, rule))


def _erase(rule: int) -> None:
    removed = Rule.objects.filter(pk=rule, enabled=False)
    removed.select_for_update().first()
    removed.delete()


def save_rate_class(name: str, fields: Fields, *, by: str, reason: str) -> RuleChange:
    """Create or change a rate class: a rate limit and a backoff for the messages of some rules.

    Rules do not decide again about letters, since their decisions stay the same.
    """
    with transaction.atomic():
        rules.lock()
        changes = differences_of_class(name, fields)
        row, new = RateClass.objects.get_or_create(name=name)
        if changes or new:
            RateClass.objects.filter(pk=row.pk).update(**dict(fields))
            _audit({"rate class": name}, changes, new=new, by=by, reason=reason)
        return RuleChange(row.pk, new, changes)


def differences_of_class(name: str, fields: Fields) -> list[Difference]:
    """Return the fields of a rate class that would change; if the rate class does not exist, return all fields."""
    return _differences(name, RateClass.objects.filter(name=name).first(), fields)


def check(row: Rule) -> None:
    """Check that a rule can be evaluated and applied; if not, raise InvalidRule, which says what to write."""
    rules.parse_row(row)
    watched = row.target and DeadLetterQueue.objects.filter(arn=row.target.arn).first()
    if watched:
        raise InvalidRule(
            f'Rule "{row.name}" is unclear: {row.target} is watched, as {watched.name}: messages sent there would be '
            "captured as failed. Name a queue that is not watched."
        )
    if row.valid_from and row.valid_until and row.valid_until <= row.valid_from:
        raise InvalidRule(f'Rule "{row.name}" is unclear: it ends before it begins. Give it a later end.')
    backoff = (row.backoff_base, row.backoff_cap, row.backoff_jitter)
    if any(value is None for value in backoff) and any(value is not None for value in backoff):
        raise InvalidRule(f'Rule "{row.name}" is unclear: a backoff has a base, a cap and a jitter. Give all three.')


_TITLES = {
    ActionKind.SAVE_RULE: "Save the rule", ActionKind.SWITCH_RULE: "Enable or disable the rule",
    ActionKind.REMOVE_RULE: "Remove the rule",
}  # fmt: skip


def _check_approval(  # noqa: PLR0913  # each by its name
    kind: ActionKind, row: Rule, arguments: dict[str, Any], *, by: str, approval: Cover, before: Rule | None = None
) -> None:
    """Refuse a change of an enabled rule that needs a second person; the rule may affect any number of messages."""
    messages = messages_of(row, before if before and before.enabled else row)
    about = [] if ALL in messages else sorted(messages)
    title = f"{_TITLES[kind]} {row.name}"
    if kind is ActionKind.SWITCH_RULE:
        title = f"{'Enable' if arguments['enabled'] else 'Disable'} the rule {row.name}"
    action = RequestedAction(kind, title, {"name": row.name, "about": about, **arguments})
    guard.check(action, messages, by=by, approval=approval)


def messages_of(*some: Rule) -> dict[int, int | None]:
    """Return the argument `messages` of `guard.check` for rules: their DLQs, each with None (any number of messages).

    If one of the rules is for all DLQs, return `{ALL: None}`.
    """
    dlqs = {row.dlq_id for row in some}
    return {ALL: None} if None in dlqs else dict.fromkeys(dlq for dlq in dlqs if dlq)


def counted_messages(row: Rule, before: Rule | None) -> dict[int, int | None]:
    """Return the argument `messages` of `guard.check` for a change of a rule. A disabled rule affects no messages.

    `before`: the rule before the change; None: the rule is new. The result is empty if the rule is disabled both before
    and after the change.
    """
    in_force = [rule for rule in (row, before) if rule and rule.enabled]
    return messages_of(*in_force) if in_force else {}


def _as_lists(changes: list[Difference]) -> list[list[Any]]:
    return [[change.field, change.before, change.after] for change in changes]


def _stored_target(target: Target) -> Target:
    """Return the stored target; if it is not stored yet, store it."""
    if not target._state.adding:  # noqa: SLF001 - Django's own word for a row that is not stored
        return target
    known = Target.objects.filter(arn=target.arn).first()
    if known is None:
        target.save(force_insert=True)
    return known or target


def _audit(of: dict[str, str], changes: list[Difference], *, new: bool, by: str, reason: str, **about: Any) -> None:  # noqa: ANN401  columns of a row
    AuditEntry.objects.create(
        act=AuditAct.ADDED if new else AuditAct.CHANGED, by=by, reason=reason, **about,
        before=of | ({} if new else {change.field: change.before for change in changes}),
        after=of | {change.field: change.after for change in changes},
    )  # fmt: skip


def _record(row: Rule, changes: list[Difference], by: str, reason: str, *, new: bool = False) -> None:
    _audit({"rule": row.name}, changes, new=new, by=by, reason=reason, rule=row, dlq=row.dlq)
