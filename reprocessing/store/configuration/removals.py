"""Check whether objects that are no longer in a configuration file can be removed, and remove them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from django.db.models import Count, Q

from reprocessing.domain.configuration.keys import Kind
from reprocessing.domain.lifecycle import STATE_NAMES, LetterState
from reprocessing.models import (
    Attempt,
    AuditEntry,
    Breaker,
    Claim,
    DeadLetterQueue,
    DlqCopy,
    FailureGroup,
    Lane,
    Letter,
    NotificationRoute,
    Policy,
    RateClass,
    Rule,
    Run,
    Source,
    Target,
)
from reprocessing.models.audit import AuditAct
from reprocessing.models.target import Proof
from reprocessing.store.approvals import default_limit
from reprocessing.store.approvals.guard import Cover
from reprocessing.store.notifications import routes
from reprocessing.store.routing import rule_changes


def objections(kind: Kind, name: str) -> Iterator[str]:
    """Yield a sentence for each reason why an object cannot be removed, with what to do; nothing if it can be removed.

    This function does not check whether other objects refer to the object; `apply_config` checks this elsewhere.
    """
    match kind:
        case Kind.DLQ:
            yield from _objections_to_dlq(DeadLetterQueue.objects.get(name=name))
        case Kind.TARGET:
            if _has_history(Target.objects.get(arn=name)):
                yield f"Messages were sent to {name}, and the history has their attempts. Keep the target in the file."
        case Kind.RATE_CLASS:
            if (
                Letter.objects.filter(rate_class__name=name).exists()
                or Attempt.objects.filter(breaker__rate_class__name=name).exists()
            ):
                yield f"Stored messages were sent with the rate class {name}. Keep it in the file."
        case Kind.POLICY | Kind.RULE | Kind.NOTIFICATION | Kind.APPROVAL:
            return


def _objections_to_dlq(dlq: DeadLetterQueue) -> Iterator[str]:
    unfinished = Letter.objects.filter(Q(finished_at=None) | Q(state=LetterState.PARKED), dlq=dlq)
    counts = dict(unfinished.values_list("state").annotate(n=Count("id")).order_by("state"))
    if counts:
        told = ", ".join(f"{n:,} {STATE_NAMES.get(state, state)}" for state, n in counts.items())
        yield (
            f"The DLQ has unfinished messages: {told}. Finish its runs (manage.py redrive_status {dlq.name}), and "
            "release or discard its parked messages; or keep the DLQ in the file."
        )
    elif _has_rows(dlq):
        yield (
            "The DLQ has a history of messages or runs, which is kept. Keep the DLQ in the file; set mode: observe to "
            "receive nothing from it."
        )
    for target in Target.objects.filter(watched_by=dlq, proof=Proof.ABSENCE).order_by("arn"):
        if _is_used_elsewhere(target, dlq):
            yield f"The target {target.arn} has outcome: absence, which needs this DLQ. Set outcome: accepted there."


def _has_rows(dlq: DeadLetterQueue) -> bool:
    return any(rows.objects.filter(dlq=dlq).exists() for rows in (Letter, Lane, Run, DlqCopy, FailureGroup))


def _is_used_elsewhere(target: Target, dlq: DeadLetterQueue) -> bool:
    return (
        Source.with_removed.filter(target=target).exclude(dlq=dlq).exists()
        or Rule.objects.filter(target=target).exists()
        or _has_history(target)
    )


def _has_history(target: Target) -> bool:
    return any(rows.objects.filter(target=target).exists() for rows in (Attempt, Claim, Letter))


def remove_dlq(name: str, *, by: str, reason: str) -> None:
    """Delete a DLQ, and the targets that only its source queues used. Call it only if `objections` yields nothing."""
    dlq = DeadLetterQueue.objects.select_for_update().get(name=name)
    led = list(Target.objects.filter(Q(sources__dlq=dlq) | Q(watched_by=dlq)).distinct())
    orphans = [target.pk for target in led if not _is_used_elsewhere(target, dlq)]
    Target.objects.filter(watched_by=dlq).exclude(pk__in=orphans).update(watched_by=None)
    Target.objects.filter(pk__in=orphans).update(watched_by=None, proof=Proof.ACCEPTED)
    DeadLetterQueue.objects.filter(pk=dlq.pk).update(default_source=None)
    Source.with_removed.filter(dlq=dlq).delete()
    Target.objects.filter(pk__in=orphans).delete()
    dlq.delete()
    _record(
        Kind.DLQ, name, {"url": dlq.url, "arn": dlq.arn, "targets": [t.arn for t in led if t.pk in orphans]}, by, reason
    )


def _remove_target(name: str, by: str, reason: str) -> None:
    if Target.objects.filter(arn=name).delete()[0]:
        _record(Kind.TARGET, name, {}, by, reason)


def _remove_rate_class(name: str, by: str, reason: str) -> None:
    Breaker.objects.filter(rate_class__name=name).delete()
    RateClass.objects.filter(name=name).delete()
    _record(Kind.RATE_CLASS, name, {}, by, reason)


def _remove_policy(name: str, by: str, reason: str) -> None:
    row = Policy.objects.get(name=name)
    row.delete()
    _record(Kind.POLICY, name, row.settings, by, reason)


def _remove_rule(name: str, by: str, reason: str, approval: Cover) -> None:
    rule_changes.remove(Rule.objects.get(name=name).pk, by=by, reason=reason, approval=approval)


def _remove_route(name: str, by: str, reason: str) -> None:
    if NotificationRoute.objects.filter(destination=name).exists():
        routes.remove_route(name, by=by, reason=reason)


_REMOVE: Final[Mapping[Kind, Callable[[str, str, str], None]]] = {
    Kind.TARGET: _remove_target,
    Kind.RATE_CLASS: _remove_rate_class,
    Kind.POLICY: _remove_policy,
    Kind.NOTIFICATION: _remove_route,
    Kind.DLQ: lambda name, by, reason: remove_dlq(name, by=by, reason=reason),
}


def remove(kind: Kind, name: str, *, by: str, reason: str, approval: Cover = None) -> None:
    """Remove an object from the database. Call it only if `objections` yields nothing for the object.

    A rule is only disabled. To delete it, call `rule_changes.erase` after the commit. `approval`: the `guard.Parts` of
    `apply_config`, which collect the changes that need a second person's approval; None: the person `by` acts alone.
    """
    match kind:
        case Kind.RULE:
            _remove_rule(name, by, reason, approval)
        case Kind.APPROVAL:
            default_limit.set_default(None, by=by, reason=reason, approval=approval)
        case _:
            _REMOVE[kind](name, by, reason)


def _record(kind: Kind, name: str, before: object, by: str, reason: str) -> None:
    told = {kind.singular: name, "settings": before}
    AuditEntry.objects.create(
        act=AuditAct.CHANGED, by=by, reason=reason, before=told, after={kind.singular: name, "removed": True}
    )
