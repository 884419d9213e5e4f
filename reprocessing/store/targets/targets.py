"""Write targets and the settings of their circuit breakers, with audit log entries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.db import transaction

from reprocessing.domain.errors import InvalidTarget
from reprocessing.domain.message.arn import resource_name
from reprocessing.domain.targets.target_kind import TargetKind
from reprocessing.models.audit import AuditAct, AuditEntry
from reprocessing.models.dlq import DeadLetterQueue
from reprocessing.models.safety import CheckKind, HealthCheck
from reprocessing.models.target import Target
from reprocessing.store.proposed_changes import Difference, Fields, changed_fields

#: Settings of a target that are stored on its breakers, and the names of these fields on the breaker.
BREAKER_FIELDS: Mapping[str, str] = {
    "breaker_threshold": "threshold",
    "breaker_ratio": "ratio",
    "breaker_cooldown": "cooldown",
    "breaker_closes_after": "canaries_to_close",
    "ramp_from": "ramp_from",
    "ramp_every": "ramp_every",
}


def find_targets(arns: Iterable[str]) -> dict[str, Target]:
    """Return the stored targets with these ARNs, by ARN. An HTTP endpoint has its URL instead of an ARN."""
    return {row.arn: row for row in Target.objects.filter(arn__in=list(arns)).select_related("watched_by")}


def names_in_metrics() -> dict[int, str]:
    """Return, by target id, the target's name in metrics and alarms: the short name, or the ARN if names are equal."""
    arns = dict(Target.objects.order_by("pk").values_list("pk", "arn"))
    shared = Counter(resource_name(arn) for arn in arns.values())
    return {target: name if shared[name := resource_name(arn)] == 1 else arn for target, arn in arns.items()}


def differences(arn: str, fields: Fields, row: Target | None) -> list[Difference]:
    """Return the fields of a target that would change; if the target does not exist, return all fields.

    `row`: the stored target. In `fields`, `watched_by` is the ARN of the target's DLQ; `BREAKER_FIELDS` are stored on
    the target's circuit breakers.
    """
    return changed_fields(resource_name(arn), _values(row, fields) if row else {}, fields)


def write_target(arn: str, fields: Fields) -> Target:
    """Create the target with these fields, or write the fields to the stored target; return it.

    `fields`: see `differences`. Call it in a transaction.
    """
    row = {name: value for name, value in fields.items() if name not in BREAKER_FIELDS}
    if "watched_by" in row:
        row["watched_by"] = DeadLetterQueue.objects.filter(arn=row["watched_by"]).first()
    target, _ = Target.objects.update_or_create(arn=arn, defaults=row)
    _sync_policy_check(target)
    _write_breakers(target, fields)
    return target


def save_target(
    arn: str, fields: Fields, *, by: str, reason: str, seen: Sequence[Difference] | None = None
) -> list[Difference]:
    """Create the target, or change it, and write an audit log entry; return the changes.

    `seen`: the changes that a person saw and confirmed; if other changes would be made, raise InvalidTarget. None: no
    person saw the changes before.
    """
    with transaction.atomic():
        row = Target.objects.select_for_update(of=("self",)).select_related("watched_by").filter(arn=arn).first()
        changes = differences(arn, fields, row)
        if seen is not None and changes != list(seen):
            raise InvalidTarget(f"{resource_name(arn)} was not written: somebody else has changed it since you looked.")
        if changes:
            AuditEntry.objects.create(
                act=AuditAct.CHANGED if row else AuditAct.ADDED,
                target=write_target(arn, fields),
                by=by,
                reason=reason,
                before={change.field: change.before for change in changes} if row else {},
                after={change.field: change.after for change in changes},
            )
        return changes


def _write_breakers(target: Target, values: Fields) -> None:
    """Write the settings of the target's circuit breakers. A ramp-up that is at its start gets the new start value."""
    said = {its: values[name] for name, its in BREAKER_FIELDS.items() if name in values}
    if not said:
        return
    for breaker in target.breakers.select_for_update().order_by("pk"):
        climbed = breaker.ramp > breaker.ramp_from
        for its, value in said.items():
            setattr(breaker, its, value)
        breaker.ramp = max(breaker.ramp, breaker.ramp_from) if climbed else breaker.ramp_from
        breaker.cooldown_cap = max(breaker.cooldown_cap, breaker.cooldown)
        breaker.save(update_fields=[*said, "ramp", "cooldown_cap"])


def _values(target: Target, wanted: Fields) -> dict[str, Any]:
    values = {name: getattr(target, name) for name in wanted if name not in BREAKER_FIELDS}
    if any(name in BREAKER_FIELDS for name in wanted):
        breaker = target.breakers.get(rate_class=None)
        values |= {name: getattr(breaker, its) for name, its in BREAKER_FIELDS.items() if name in wanted}
    if "watched_by" in values:
        values["watched_by"] = target.watched_by and target.watched_by.arn
    return values


def _sync_policy_check(target: Target) -> None:
    """Add a health check of the queue's redrive policy to a Celery target; remove this check from other targets.

    If the queue of a Celery target has no redrive policy, the target is unhealthy, and nothing is sent: the Celery
    worker would delete the messages that it rejects.
    """
    its = {"target": target, "kind": CheckKind.POLICY, "subject": ""}
    if target.kind == TargetKind.CELERY:
        HealthCheck.objects.get_or_create(**its, defaults={"every": 30.0, "max_age": 90.0})
    else:
        HealthCheck.objects.filter(**its).delete()
