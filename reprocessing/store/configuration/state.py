"""Read the settings of all objects that a configuration file can describe, in a few queries."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Final

from django.db.models import Prefetch, QuerySet

from reprocessing.domain.configuration.keys import CHECK_KEYS, KEYS, POLICY_FIELDS, Kind, Settings, State
from reprocessing.models import (
    ApprovalDefault,
    Breaker,
    DeadLetterQueue,
    HealthCheck,
    NotificationRoute,
    Policy,
    RateClass,
    Rule,
    Target,
)
from reprocessing.store.dlqs.dlq_proposal import crontab_text, interval_seconds
from reprocessing.store.targets.targets import BREAKER_FIELDS

_KEY_OF_CHECK: Final = {kind: key for key, kind in CHECK_KEYS.items()}
_TARGET: Final = [name for name in KEYS[Kind.TARGET].values() if name not in {*BREAKER_FIELDS, "health_checks"}]


def read_state() -> State:
    """Return the settings of all objects, by kind and name. Rules are in evaluation order, others sorted by name."""
    return {
        Kind.POLICY: {row.name: dict(row.settings) for row in Policy.objects.order_by("name")},
        Kind.RATE_CLASS: {row.name: _plain(Kind.RATE_CLASS, row) for row in RateClass.objects.order_by("name")},
        Kind.TARGET: {row.arn: _target(row) for row in _targets()},
        Kind.DLQ: {row.name: _dlq(row) for row in _dlqs()},
        Kind.RULE: {row.name: _rule(row) for row in _rules()},
        Kind.NOTIFICATION: {row.destination: _route(row) for row in _routes()},
        Kind.APPROVAL: {row.name: _plain(Kind.APPROVAL, row) for row in ApprovalDefault.objects.all()},
    }


def stored_dlq(name: str) -> Settings | None:
    """Return the settings of the DLQ with this name; None: there is none."""
    row = _dlqs().filter(name=name).first()
    return None if row is None else _dlq(row)


def stored_targets(arns: Iterable[str]) -> dict[str, Settings]:
    """Return the settings of the stored targets with these ARNs, by ARN."""
    return {row.arn: _target(row) for row in _targets().filter(arn__in=list(arns))}


def _plain(kind: Kind, row: object) -> Settings:
    return {name: getattr(row, name) for name in KEYS[kind].values()}


def _targets() -> QuerySet[Target]:
    own = Prefetch("breakers", Breaker.objects.filter(rate_class=None), to_attr="own_breakers")
    checks = Prefetch("checks", HealthCheck.objects.filter(kind__in=CHECK_KEYS.values()), to_attr="set_checks")
    return Target.objects.order_by("arn").prefetch_related(own, checks)


def _target(row: Any) -> Settings:  # noqa: ANN401  a target as _targets() returns it
    (breaker,) = row.own_breakers
    return {
        **{name: getattr(row, name) for name in _TARGET},
        **{name: getattr(breaker, its) for name, its in BREAKER_FIELDS.items()},
        "health_checks": sorted(map(_check, row.set_checks), key=check_order),
    }


def _check(row: HealthCheck) -> Settings:
    key = _KEY_OF_CHECK[row.kind]
    found: Settings = {key: row.subject if row.ceiling is None else row.ceiling}
    return found if row.expected_status is None else {**found, "status": row.expected_status}


def check_order(check: Settings) -> list[str]:
    """Return the sort key of a target's health check. Sorted lists of health checks can be compared."""
    return [f"{key} {value}" for key, value in check.items()]


def _dlqs() -> QuerySet[DeadLetterQueue]:
    rows = DeadLetterQueue.objects.order_by("name").select_related("policy", "interval", "crontab", "default_source")
    return rows.prefetch_related("sources__target")


def _dlq(row: DeadLetterQueue) -> Settings:
    return {
        "url": row.url,
        "policy": row.policy and row.policy.name,
        "own_settings": list(row.own_settings),
        "sources": {source.arn: source.target.arn for source in sorted(row.sources.all(), key=lambda one: one.arn)},
        "default_source": row.default_source and row.default_source.arn,
        **{name: getattr(row, name) for name in POLICY_FIELDS},
        "interval": row.interval and int(interval_seconds(row.interval)),
        "crontab": crontab_text(row.crontab),
        "fifo": row.fifo,
    }


def _rules() -> Iterable[Rule]:
    return Rule.objects.order_by("position", "pk").select_related("dlq", "target", "rate_class")


def _rule(row: Rule) -> Settings:
    return {
        **_plain(Kind.RULE, row),
        "dlq": row.dlq and row.dlq.name,
        "target": row.target and row.target.arn,
        "rate_class": row.rate_class and row.rate_class.name,
        "valid_from": _time(row.valid_from),
        "valid_until": _time(row.valid_until),
    }


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _routes() -> Iterable[NotificationRoute]:
    return NotificationRoute.objects.order_by("destination").prefetch_related("dlqs")


def _route(row: NotificationRoute) -> Settings:
    return {"kinds": sorted(row.kinds), "dlqs": sorted(dlq.name for dlq in row.dlqs.all())}
