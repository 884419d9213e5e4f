"""Add or change a DLQ: its row, source queues, targets and audit log entry, in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import Group
from django.db import IntegrityError, transaction
from django_celery_beat.models import CrontabSchedule, IntervalSchedule
from psycopg.errors import UniqueViolation

from reprocessing.domain.approvals.requested_action import ActionKind, RequestedAction
from reprocessing.domain.errors import DlqAlreadyRegistered
from reprocessing.models.audit import AuditAct, AuditEntry
from reprocessing.models.dlq import DeadLetterQueue, Mode, Source
from reprocessing.store.approvals import default_limit, guard, limits
from reprocessing.store.approvals.guard import Cover
from reprocessing.store.configuration import policies
from reprocessing.store.dlqs.dlq_proposal import (
    CRONTAB,
    DEFAULT,
    PLACE_KEYS,
    RULE_KEYS,
    SOURCE,
    TARGET_KEYS,
    TO,
    DlqProposal,
    crontab_schedule,
    differences,
)
from reprocessing.store.ordering import placement
from reprocessing.store.parking_lot import decisions
from reprocessing.store.proposed_changes import Difference, Fields
from reprocessing.store.rights import roles, visible_dlqs
from reprocessing.store.routing import rules
from reprocessing.store.targets import targets


@dataclass(frozen=True, slots=True)
class Registered:
    """The result of `register`: the changes that were stored (`differences`), and whether the DLQ is new."""

    new: bool
    differences: list[Difference]


def register(proposal: DlqProposal, *, by: str, reason: str, seen: Sequence[Difference] | None = None) -> Registered:
    """Add or change a DLQ with its source queues and targets, with an audit log entry.

    `seen`: the changes that a person has seen. If other changes would be made, nothing is stored. None: no check.

    Raises:
        DlqAlreadyRegistered: another person has added or changed the DLQ meanwhile.
        ApprovalNeeded: the change lets one person do more than now, so a second person must approve it.
    """
    try:
        with transaction.atomic():
            registered = write(proposal, by=by, reason=reason, seen=seen)
    except IntegrityError as error:
        if not isinstance(error.__cause__, UniqueViolation):
            raise
        raise DlqAlreadyRegistered(
            f"{proposal.name} was not saved: somebody else has just added it, or its queue under another name. "
            "Run manage.py redrive_status, then this again."
        ) from error
    after_commit(proposal.name, registered)
    return registered


def after_commit(name: str, registered: Registered) -> None:
    """If the DLQ's setting `when_parked` was changed, let lanes continue that waited because of a parked letter.

    Call it after `write` is committed.
    """
    if any(change.field == "when_parked" for change in registered.differences):
        decisions.advance_held_lanes(DeadLetterQueue.objects.get(name=name).pk)


def write(
    proposal: DlqProposal, *, by: str, reason: str, seen: Sequence[Difference] | None = None, approval: Cover = None
) -> Registered:
    """Add or change a DLQ as `register` does, but in the caller's transaction. After the commit, call `after_commit`.

    `seen`: the changes that a person saw; None: no check. `approval`: the id of the approval that is being
    executed, or the `guard.Parts` of `apply_config` (they collect what needs a second person); None: `by` acts alone.

    Raises:
        DlqAlreadyRegistered: other changes than those in `seen` would be made.
        ApprovalNeeded: the change lets one person do more than now, so a second person must approve it.
    """
    if asked := any(name in RULE_KEYS for name in proposal.dlq):
        rules.lock()
    dlq = DeadLetterQueue.objects.select_for_update().filter(name=proposal.name).first()
    changes = differences(proposal)
    if seen is not None and changes != list(seen):
        raise DlqAlreadyRegistered(f"{proposal.name} was not written: somebody else has changed it since you looked.")
    if not changes:
        return Registered(new=False, differences=[])
    new = dlq is None
    if dlq is not None and (lifted := _loosened_settings(dlq, proposal.dlq)):
        guard.check(_settings_action(dlq, lifted), {dlq.pk: None}, by=by, approval=approval)
    places_changed = any(
        change.field in {*PLACE_KEYS, *TARGET_KEYS, SOURCE, DEFAULT} or change.field.startswith(TO)
        for change in changes
    )
    dlq = _write_dlq(dlq or DeadLetterQueue(name=proposal.name), proposal.dlq)
    _write_sources(dlq, proposal)
    _write_teams(dlq, proposal.teams)
    if places_changed and not new:
        placement.place_again(dlq.pk)
    if asked and not new and any(change.field in RULE_KEYS for change in changes):
        rules.raise_version()
    AuditEntry.objects.create(
        act=AuditAct.ADDED if new else AuditAct.CHANGED, dlq=dlq, by=by, reason=reason,
        before={} if new else {name: change.before for name, change in _named(changes).items()},
        after={name: change.after for name, change in _named(changes).items()},
    )  # fmt: skip
    return Registered(new=new, differences=changes)


def lift(action: RequestedAction, *, by: str, reason: str, approval: int) -> None:
    """Change settings of one DLQ, or of all DLQs, as an approved `action` of a person asks for.

    Call it in a transaction. `approval`: the id of the approval.
    """
    key, fields = action.arguments["dlq"], action.arguments["fields"]
    if key is None:
        default_limit.set_default(fields["above"], by=by, reason=reason, approval=approval)
        return
    guard.check(action, {}, by=by, approval=approval)
    dlq = DeadLetterQueue.objects.select_for_update().get(pk=key)
    before = {name: getattr(dlq, name) for name in fields}
    if dlq.policy_id is not None:  # else the next apply would restore the policy's values
        fields = fields | {"own_settings": sorted({*dlq.own_settings, *fields})}
    _write_dlq(dlq, fields)
    AuditEntry.objects.create(act=AuditAct.CHANGED, dlq=dlq, by=by, reason=reason, before=before, after=fields)


def lifts_approvals(dlq: DeadLetterQueue, wanted: Fields) -> bool:
    """Return whether the wanted settings let one person do more than now, so that a second person must approve them."""
    return bool(_loosened_settings(dlq, wanted))


def _loosened_settings(dlq: DeadLetterQueue, wanted: Fields) -> dict[str, Any]:
    """Return the wanted settings that let one person do more than now, or let the service send automatically."""
    default = limits.default_limit()

    def effective(limit: int | None) -> int | None:
        return default if limit is None else limit

    found, now = dict[str, Any](), effective(dlq.approval_above)
    if "approval_above" in wanted and limits.is_looser(effective(wanted["approval_above"]), now):
        found["approval_above"] = wanted["approval_above"]
    if wanted.get("mode") == Mode.AUTOMATIC and dlq.mode != Mode.AUTOMATIC and now is not None:
        found["mode"] = Mode.AUTOMATIC.value
    return found


def _settings_action(dlq: DeadLetterQueue, fields: dict[str, Any]) -> RequestedAction:
    return RequestedAction(
        ActionKind.CHANGE_SETTINGS, f"Change the settings of {dlq.name}", {"dlq": dlq.pk, "fields": fields}
    )


def _named(changes: Sequence[Difference]) -> dict[str, Difference]:
    """Return the changes by unique names. A DLQ and its source queue may have one name, so the kind may be added."""
    named: dict[str, Difference] = {}
    for change in changes:
        name = f"{change.name}.{change.field}"
        named[f"{change.label}.{change.field}" if name in named else name] = change
    return named


def _write_dlq(dlq: DeadLetterQueue, values: Fields) -> DeadLetterQueue:
    for name, value in values.items():
        setattr(dlq, name, value if name not in _REFERENCES else _REFERENCES[name](value))
    if any(name in values for name in _SCHEDULES):
        dlq.next_poll_at = None  # a poll time of the old schedule does not apply to the new schedule
    dlq.save()
    return dlq


def _write_sources(dlq: DeadLetterQueue, proposal: DlqProposal) -> None:
    rows = {arn: targets.write_target(arn, values) for arn, values in proposal.targets.items()}
    rows |= targets.find_targets(set(proposal.ways.values()) - rows.keys())
    for arn, target in proposal.ways.items():
        Source.with_removed.update_or_create(dlq=dlq, arn=arn, defaults={"target": rows[target], "removed_at": None})
    if proposal.default_source:
        DeadLetterQueue.objects.filter(pk=dlq.pk).update(
            default_source=Source.objects.get(dlq=dlq, arn=proposal.default_source)
        )


def _write_teams(dlq: DeadLetterQueue, teams: Sequence[str] | None) -> None:
    """Set the teams of a DLQ. When the first DLQ gets a team, the roles lose the permission to see all DLQs."""
    if teams is None:
        return
    if teams and not visible_dlqs.has_teams():
        roles.end_view_of_all_dlqs()
    dlq.teams.set(Group.objects.filter(name__in=teams))


def _interval(seconds: int | None) -> IntervalSchedule | None:
    if seconds is None:
        return None
    row, _ = IntervalSchedule.objects.get_or_create(every=seconds, period=IntervalSchedule.SECONDS)
    return row


def _crontab(text: str | None) -> CrontabSchedule | None:
    if text is None:
        return None
    wanted = {part: getattr(crontab_schedule(text), part) for part in (*CRONTAB, "timezone")}
    row, _ = CrontabSchedule.objects.get_or_create(**wanted)
    return row


_SCHEDULES = ("interval", "crontab")
#: Fields that refer to other rows, with functions that find the row of a value.
_REFERENCES: Mapping[str, Callable[[Any], Any]] = {
    "interval": _interval,
    "crontab": _crontab,
    "policy": policies.find_policy,
}
