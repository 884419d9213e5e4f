"""Apply the plan of a configuration file: write all changes in one transaction, with an audit log entry for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from django.db import IntegrityError, transaction
from django.db.models import ProtectedError
from psycopg.errors import UniqueViolation

from reprocessing.domain.approvals.requested_action import ALL, ApprovalNeeded, ApprovalRefused, RequestedAction
from reprocessing.domain.configuration.changes import Action, ObjectChange
from reprocessing.domain.configuration.keys import CHECK_KEYS, POLICY_FIELDS, Kind, Settings
from reprocessing.domain.errors import ConfigurationRefused
from reprocessing.models import AuditEntry, DeadLetterQueue, HealthCheck, Policy, RateClass, Rule, Source, Target
from reprocessing.models.audit import AuditAct
from reprocessing.models.safety import CheckKind
from reprocessing.pipeline.configuration import frozen_plan
from reprocessing.pipeline.configuration.check_settings import route_of, rule_row
from reprocessing.pipeline.configuration.plan import Plan, is_current, objects_in_file
from reprocessing.pipeline.routing import route
from reprocessing.store.approvals import default_limit, guard
from reprocessing.store.capture import capture_lease
from reprocessing.store.configuration import apply_lock, managed, removals, state
from reprocessing.store.dlqs import registration, source_queues
from reprocessing.store.dlqs.dlq_proposal import DlqProposal
from reprocessing.store.dlqs.registration import Registered
from reprocessing.store.notifications import routes
from reprocessing.store.routing import rule_changes, rules
from reprocessing.store.safety import health_checks
from reprocessing.store.safety.health_checks import CheckQuestion
from reprocessing.store.targets import targets

_NOT_ON_TARGET: Final = frozenset({"health_checks"})


@dataclass(slots=True)
class _Apply:
    plan: Plan
    by: str
    reason: str
    parts: guard.Parts = field(default_factory=guard.Parts)
    registered: dict[str, Registered] = field(default_factory=dict)
    erased: list[int] = field(default_factory=list)

    @property
    def signed(self) -> dict[str, str]:
        return {"by": self.by, "reason": self.reason}

    @property
    def covered(self) -> dict[str, Any]:
        """Return the arguments by, reason and approval for functions that may require a second person."""
        return {**self.signed, "approval": self.parts}


def apply(plan: Plan, *, by: str, source: str) -> bool:
    """Write the changes of a plan. Return False, and write nothing, if stored settings changed since the plan was made.

    `source`: the file's version, such as a commit; may be empty. If another apply is running, wait until it ends.

    Raises:
        ConfigurationRefused: the plan has problems, PostgreSQL refuses a value, or somebody has just added an object
            that the plan adds, too.
        ApprovalNeeded: a change of the plan needs a second person, who must approve the whole plan.
    """
    if plan.problems:
        raise ConfigurationRefused("The plan has problems, so nothing was changed.")
    work = _Apply(plan, by, f"apply_config, source: {source}" if source else "apply_config")
    with _refusals(), transaction.atomic():
        if not _write(work, source):
            return False
        if work.parts.needed:
            raise ApprovalNeeded(frozen_plan.action_of(plan, source), {ALL: None})
    _after_commit(work)
    return True


def apply_approved(plan: Plan, action: RequestedAction, *, by: str, reason: str, approval: int) -> Callable[[], None]:
    """Write an approved plan in the caller's transaction; return a function to call after the commit.

    `action`: the approved action.

    Raises:
        ConfigurationRefused: PostgreSQL refuses a value, or somebody has just added an object that the plan adds, too.
        ApprovalRefused: the plan is not the approved plan, because the queues or the stored settings changed.
    """
    source = frozen_plan.source_of(action)
    for problem in plan.problems:
        raise ApprovalRefused(f"The file has a problem now: {problem.text}")
    now = frozen_plan.action_of(plan, source)
    if now.stamp != action.stamp:
        raise ApprovalRefused("The queues are not as they were when it was requested. Apply the file again.")
    guard.check(now, {}, by=by, approval=approval)
    work = _Apply(plan, by, reason)
    with _refusals():
        if not _write(work, source):
            raise ApprovalRefused("Somebody changed the configuration at this moment. Apply the file again.")
    return partial(_after_commit, work)


def _write(work: _Apply, source: str) -> bool:
    """Write the changes of the plan, and record which objects the file manages.

    Return False if stored settings changed since the plan was made.
    """
    plan = work.plan
    apply_lock.lock_applies()
    _lock(plan)
    if not is_current(plan):
        return False
    _write_all(work)
    after = state.read_state()
    managed.update_marks(plan.now, after)
    managed.write_marks(objects_in_file(plan.given, after), by=work.by, source=source)
    return True


@contextmanager
def _refusals() -> Iterator[None]:
    """Turn PostgreSQL's refusal of a change in the `with` block into ConfigurationRefused, with a text for people."""
    try:
        yield
    except ProtectedError as error:
        used = ", ".join(sorted(str(row) for row in error.protected_objects)[:5])
        what = f"an object that --prune removes is still used, by: {used}. Keep the object in the file."
        raise ConfigurationRefused(f"Nothing was changed: {what}") from error
    except IntegrityError as error:
        what = "somebody else has just added one of the objects. Apply the file again."
        if not isinstance(error.__cause__, UniqueViolation):
            what = f"PostgreSQL refuses a value: {str(error).splitlines()[0]}. Correct it in the file."
        raise ConfigurationRefused(f"Nothing was changed: {what}") from error


def _lock(plan: Plan) -> None:
    """Lock the rules, and the DLQs and targets that change.

    All other transactions lock them in the same order; another order would lead to deadlocks.
    """
    names = {kind: [change.name for change in plan.changes if change.kind is kind] for kind in Kind}
    rules.lock()
    list(DeadLetterQueue.objects.select_for_update(of=("self",)).filter(name__in=names[Kind.DLQ]).order_by("pk"))
    list(Target.objects.select_for_update(of=("self",)).filter(arn__in=names[Kind.TARGET]).order_by("pk"))


def _write_all(work: _Apply) -> None:
    for change in work.plan.changes:
        if change.action is Action.REMOVE:
            if change.kind is Kind.RULE:
                work.erased.append(Rule.objects.get(name=change.name).pk)
            removals.remove(change.kind, change.name, **work.covered)
        else:
            _WRITE[change.kind](work, change, work.plan.desired[change.kind][change.name])
    for name in work.plan.examined.dlqs.keys() - work.registered.keys():
        _register(work, name, work.plan.examined.dlqs[name].proposal)  # only the targets of this DLQ change
    for change in work.plan.changes:
        if change.kind is Kind.TARGET and change.action is not Action.REMOVE:
            _checks(work, change.name, work.plan.desired[Kind.TARGET][change.name])


def _record(work: _Apply, change: ObjectChange, **about: Any) -> None:  # noqa: ANN401  columns of a row
    named = {change.kind.singular: change.name}
    before, after = ({setting.key: getattr(setting, side) for setting in change.fields} for side in ("before", "after"))
    new = change.action is Action.ADD
    AuditEntry.objects.create(
        act=AuditAct.ADDED if new else AuditAct.CHANGED, before=named | ({} if new else before), after=named | after,
        **work.signed, **about,
    )  # fmt: skip


def _policy(work: _Apply, change: ObjectChange, settings: Settings) -> None:
    Policy.objects.update_or_create(name=change.name, defaults={"settings": settings})
    _record(work, change)


def _rate_class(work: _Apply, change: ObjectChange, settings: Settings) -> None:
    rule_changes.save_rate_class(change.name, settings, **work.signed)


def _target(work: _Apply, change: ObjectChange, _: Settings) -> None:
    case = work.plan.examined.targets.get(change.name)
    if case is not None:  # else the target is written together with its DLQ
        fields = {name: value for name, value in case.fields.items() if name not in _NOT_ON_TARGET}
        if fields:
            targets.save_target(change.name, fields, by=work.by, reason=work.reason)


def _checks(work: _Apply, arn: str, settings: Settings) -> None:
    """Store the health checks that the file has for a target. Remove the target's other health checks."""
    wanted = settings.get("health_checks")
    before = work.plan.now[Kind.TARGET].get(arn, {}).get("health_checks", [])
    if wanted is None or wanted == before:
        return
    target = Target.objects.get(arn=arn)
    held = {(row.kind, row.subject): row.pk for row in HealthCheck.objects.filter(target=target)}
    asked = [question(check) for check in wanted]
    for check, asks in zip(wanted, asked, strict=True):
        if check not in before:
            health_checks.add_check(target.pk, asks, **work.signed)
    for key in held.keys() - {(asks.kind.value, asks.subject) for asks in asked}:
        if key[0] != CheckKind.POLICY:
            health_checks.remove_check(held[key], [target.pk], **work.signed)


def question(check: Settings) -> CheckQuestion:
    """Return the health check that these settings of the file describe."""
    key = next(key for key in CHECK_KEYS if key in check)
    value, kind = check[key], CheckKind(CHECK_KEYS[key])
    if kind in {CheckKind.DEPTH, CheckKind.AGE}:
        return CheckQuestion(kind, ceiling=float(value))
    return CheckQuestion(kind, value, expected_status=check.get("status"))


def _dlq(work: _Apply, change: ObjectChange, settings: Settings) -> None:
    before = work.plan.now[Kind.DLQ].get(change.name)
    found = work.plan.examined.dlqs.get(change.name)
    if found is not None:
        _register(work, change.name, found.proposal)
    elif before is not None:
        fields = ("policy", "own_settings", *POLICY_FIELDS)
        changed = {name: settings[name] for name in fields if name in settings and before[name] != settings[name]}
        _register(work, change.name, DlqProposal(name=change.name, dlq=changed))
    for arn in before["sources"] if before else ():
        if arn not in settings["sources"]:
            row = Source.objects.select_related("dlq").get(dlq__name=change.name, arn=arn)
            source_queues.remove_source(row, **work.signed)


def _register(work: _Apply, name: str, proposal: DlqProposal) -> None:
    work.registered[name] = registration.write(proposal, **work.covered)


def _rule(work: _Apply, change: ObjectChange, settings: Settings) -> None:
    row = rule_row(change.name, settings)
    arn = settings["target"]
    fields: dict[str, Any] = {name: getattr(row, name) for name in rule_changes.FIELDS}
    fields["dlq"] = DeadLetterQueue.objects.get(name=settings["dlq"]) if settings["dlq"] else None
    fields["rate_class"] = RateClass.objects.get(name=settings["rate_class"]) if settings["rate_class"] else None
    fields["target"] = work.plan.examined.rule_targets.get(arn) or Target.objects.get(arn=arn) if arn else None
    rule_changes.save_rule(change.name, fields, **work.covered)


def _route(work: _Apply, change: ObjectChange, settings: Settings) -> None:
    routes.set_route(route_of(change.name, settings), **work.signed)


def _approvals(work: _Apply, _: ObjectChange, settings: Settings) -> None:
    default_limit.set_default(settings["above"], **work.covered)


_WRITE: Final[Mapping[Kind, Callable[[_Apply, ObjectChange, Settings], None]]] = {
    Kind.POLICY: _policy,
    Kind.RATE_CLASS: _rate_class,
    Kind.TARGET: _target,
    Kind.DLQ: _dlq,
    Kind.RULE: _rule,
    Kind.NOTIFICATION: _route,
    Kind.APPROVAL: _approvals,
}


def _after_commit(work: _Apply) -> None:
    for name, registered in work.registered.items():
        registration.after_commit(name, registered)
        if (found := work.plan.examined.dlqs.get(name)) is not None:
            depth, row = found.observed.depth, DeadLetterQueue.objects.get(name=name)
            capture_lease.note_depth(row.pk, visible=depth.visible, in_flight=depth.in_flight)
    if any(change.kind is Kind.RULE for change in work.plan.changes):
        route.wake_stopped(route.RuleBook.load())
    for rule in work.erased:
        rule_changes.erase(rule)
