"""Decide which DLQs a person sees, and which rows belong to these DLQs (docs/adr/0040).

A DLQ belongs to teams, which are Django groups. A person sees the DLQs of their own groups, or all DLQs with the
permission `view_all_dlqs`. Without this permission, nobody sees rows of models that are not in `_SCOPES`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, PermissionsMixin
from django.db.models import BigIntegerField, Exists, Model, OuterRef, Q, QuerySet
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast

from reprocessing.models import (
    ApiToken,
    Approval,
    Attempt,
    AuditEntry,
    Breaker,
    BulkAction,
    DeadLetterQueue,
    FailureGroup,
    GlobalStop,
    HealthCheck,
    Heartbeat,
    Incident,
    Lane,
    Letter,
    Notification,
    NotificationRoute,
    ParkingQueueMessage,
    RateClass,
    Report,
    Reporter,
    Rule,
    Rulebook,
    Run,
    Source,
    Target,
    TargetCheck,
    Wave,
)
from reprocessing.models.letter import ParkedLetter

Row = TypeVar("Row", bound=Model)
Ids = tuple[int, ...]

#: The permission to see all DLQs, with or without a team, and to change rows that several DLQs share.
ALL_DLQS: Final = "reprocessing.view_all_dlqs"


@dataclass(frozen=True, slots=True)
class VisibleDlqs:
    """The ids of the DLQs that a person sees; None: all DLQs."""

    ids: Ids | None

    @property
    def are_all(self) -> bool:
        """Return whether the person sees all DLQs."""
        return self.ids is None

    @property
    def array(self) -> list[int] | None:
        """Return the ids as the value of a SQL parameter; NULL means all DLQs."""
        return None if self.ids is None else list(self.ids)

    def includes(self, dlq: int | None) -> bool:
        """Return whether the person sees this DLQ; if `dlq` is None, whether the person sees all DLQs."""
        return self.ids is None or dlq in self.ids

    def rows(self, rows: QuerySet[Row]) -> QuerySet[Row]:
        """Return the query, limited to rows of DLQs that the person sees."""
        if self.ids is None:
            return rows
        scope = _SCOPES.get(rows.model)
        return rows.none() if scope is None else rows.filter(scope(self.ids))

    def changeable(self, rows: QuerySet[Row]) -> QuerySet[Row]:
        """Limit a query of targets, circuit breakers or rules to rows that only DLQs which the person sees use."""
        if self.ids is None:
            return rows
        return self.rows(rows).filter(_UNSHARED[rows.model](self.ids))


EVERY_DLQ: Final = VisibleDlqs(None)


def visible_dlqs(user: AbstractBaseUser | AnonymousUser) -> VisibleDlqs:
    """Return the DLQs that this person sees; none if the person is not active or not signed in."""
    if not isinstance(user, PermissionsMixin) or not user.is_active:
        return VisibleDlqs(())
    if user.has_perm(ALL_DLQS):
        return EVERY_DLQ
    return _dlqs_of(user.groups.values("pk"))


def dlqs_of_token(token: ApiToken) -> VisibleDlqs:
    """Return the DLQs that an API token sees: the DLQs of its user, or of its teams."""
    return _dlqs_of(token.teams.values("pk")) if token.user is None else visible_dlqs(token.user)


def _dlqs_of(groups: QuerySet[Any, Any]) -> VisibleDlqs:
    teams = DeadLetterQueue.teams.through.objects.filter(group__in=groups)
    return VisibleDlqs(
        tuple(teams.order_by("deadletterqueue_id").values_list("deadletterqueue_id", flat=True).distinct())
    )


def has_teams() -> bool:
    """Return whether any DLQ belongs to a team."""
    return DeadLetterQueue.teams.through.objects.exists()


def _where_in(name: str) -> Callable[[Ids], Q]:
    return lambda ids: Q(**{f"{name}__in": ids})


def _targets(ids: Ids) -> Q:
    """Select the targets of visible sources and rules, and the targets whose failed messages go to a visible DLQ."""
    sources, rules = Source.with_removed.filter(dlq__in=ids), Rule.objects.filter(_rules(ids))
    return Q(watched_by__in=ids) | Q(pk__in=sources.values("target")) | Q(pk__in=rules.values("target"))


def _rules(ids: Ids) -> Q:
    """Select the rules of visible DLQs, and the rules that apply to all DLQs."""
    return Q(dlq__in=ids) | Q(dlq=None)


def _rate_classes(ids: Ids) -> Q:
    """Select the rate classes (rates and backoffs that rules use) of visible rules, and classes that no rule uses."""
    return Q(pk__in=Rule.objects.filter(_rules(ids)).values("rate_class")) | Q(rules=None)


def _of_targets(ids: Ids) -> Q:
    return Q(target__in=Target.objects.filter(_targets(ids)).values("pk"))


def _breakers(ids: Ids) -> Q:
    classes = RateClass.objects.filter(_rate_classes(ids)).values("pk")
    return _of_targets(ids) & (Q(rate_class=None) | Q(rate_class__in=classes))


def _reports(ids: Ids) -> Q:
    """Select consumers' reports about letters of visible DLQs, by redrive id, or by message id in DLQ or target."""
    letters, attempts = Letter.objects.filter(dlq__in=ids), Attempt.objects.filter(letter__dlq__in=ids)
    return (
        Q(Exists(letters.filter(public_id=OuterRef("public_id"))))
        | Q(Exists(letters.filter(message_id=OuterRef("message_id"))))
        | Q(Exists(attempts.filter(sent_message_id=OuterRef("message_id"))))
    )


def _reporters(ids: Ids) -> Q:
    others = Target.objects.exclude(_targets(ids))
    return Q(targets__isnull=False) & ~Q(pk__in=Reporter.objects.filter(targets__in=others).values("pk"))


def _routes(ids: Ids) -> Q:
    """Select the notification routes whose DLQs are all visible. Routes for all DLQs are not selected."""
    others = DeadLetterQueue.objects.exclude(pk__in=ids)
    mine = NotificationRoute.dlqs.through.objects.filter(deadletterqueue__in=ids).values("notificationroute")
    theirs = NotificationRoute.dlqs.through.objects.filter(deadletterqueue__in=others).values("notificationroute")
    return Q(pk__in=mine) & ~Q(pk__in=theirs)


def _bulk_actions(ids: Ids) -> Q:
    """Select the bulk actions whose filter matches only messages of visible DLQs."""

    def of(name: str, rows: QuerySet[Any]) -> Q:
        known = BulkAction.objects.annotate(named=Cast(KeyTextTransform(name, "filter"), BigIntegerField()))
        return Q(pk__in=known.filter(named__in=rows.values("pk")).values("pk"))

    narrow = of("group", FailureGroup.objects.filter(dlq__in=ids)) | of("run", Run.objects.filter(dlq__in=ids))
    narrow |= of("dlq", DeadLetterQueue.objects.filter(pk__in=ids))
    return narrow | of("source", Source.with_removed.filter(dlq__in=ids)) | Q(filter__dlqs__contained_by=list(ids))


def _audit_entries(ids: Ids) -> Q:
    """Select audit log entries about visible DLQs, and about targets, rules and bulk actions that no other DLQ uses."""
    targets = Target.objects.filter(_targets(ids) & _unshared_targets(ids)).values("pk")
    other = Q(target__in=targets) | Q(rule__dlq__in=ids)
    other |= Q(operation__in=BulkAction.objects.filter(_bulk_actions(ids)).values("pk"))
    return Q(dlq__in=ids) | Q(dlq=None, group__dlq__in=ids) | (Q(dlq=None, letter=None, run=None, group=None) & other)


def _unshared_targets(ids: Ids) -> Q:
    """Select the targets that only these DLQs use: no other DLQ uses them, and no rule for all DLQs."""
    sources, rules = Source.with_removed.exclude(dlq__in=ids), Rule.objects.filter(Q(dlq=None) | ~Q(dlq__in=ids))
    used = Q(pk__in=sources.values("target")) | Q(pk__in=rules.exclude(target=None).values("target"))
    return ~used & (Q(watched_by=None) | Q(watched_by__in=ids))


def _approvals(ids: Ids) -> Q:
    """Select the requests for approval that are only about visible DLQs. A request about all DLQs is not selected."""
    return Q(dlq_ids__contained_by=list(ids)) & ~Q(dlq_ids=[])


def _everybody(_: Ids) -> Q:
    return Q()


#: For each model, the condition that selects the rows of given DLQs. All admin pages use it.
_SCOPES: Final[Mapping[type[Model], Callable[[Ids], Q]]] = {
    DeadLetterQueue: _where_in("pk"),
    **dict.fromkeys((Letter, ParkedLetter, Lane, Run, Source, FailureGroup, Incident), _where_in("dlq")),
    **dict.fromkeys((Attempt, ParkingQueueMessage), _where_in("letter__dlq")),
    Wave: _where_in("run__dlq"), Notification: _where_in("incident__dlq"), NotificationRoute: _routes,
    Rule: _rules, RateClass: _rate_classes, Target: _targets, Breaker: _breakers,
    **dict.fromkeys((TargetCheck, HealthCheck), _of_targets),
    Report: _reports, Reporter: _reporters, BulkAction: _bulk_actions, AuditEntry: _audit_entries,
    Approval: _approvals,
    # Everybody sees the global stop, the heartbeats of workers and the version of the rules.
    **dict.fromkeys((GlobalStop, Heartbeat, Rulebook), _everybody),
}  # fmt: skip
#: For each model whose rows several DLQs can use, the condition that selects the rows that no other DLQ uses.
_UNSHARED: Final[Mapping[type[Model], Callable[[Ids], Q]]] = {
    Target: _unshared_targets, Rule: _where_in("dlq"),
    Breaker: lambda ids: Q(target__in=Target.objects.filter(_unshared_targets(ids)).values("pk")),
}  # fmt: skip
