"""Record which objects (DLQs, targets, rules ...) a configuration file manages, unlock objects, and find drift.

A managed object is locked: people cannot change it in the admin. Drift is a difference between the present settings of
a managed object and the settings that the last `apply_config` wrote.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.db import transaction
from django.db.models import Q

from reprocessing.domain.configuration.changes import ObjectChange, compare
from reprocessing.domain.configuration.keys import Kind, Settings, State
from reprocessing.models import AuditEntry, DeadLetterQueue, ManagedObject, Rule, Target
from reprocessing.models.audit import AuditAct
from reprocessing.store.configuration import state
from reprocessing.store.ordering.lanes import database_now

_WRITTEN = ("written", "applied_from", "applied_by", "applied_at", "unlocked_at", "unlocked_by", "unlock_reason")


@dataclass(frozen=True, slots=True)
class Drift:
    """A managed object that was changed or unlocked since the last `apply_config`.

    `mark`: the record that the object is managed. `change`: what changed; None: the object was only unlocked. `now`:
    its present settings; None: it was removed.
    """

    mark: ManagedObject
    change: ObjectChange | None
    now: Settings | None


def write_marks(objects: State, *, by: str, source: str) -> None:
    """Record that a configuration file manages these objects, and lock them, so that the admin cannot change them.

    Other objects of these kinds are not managed any more. `source`: the file's version, such as a commit; may be empty.
    """
    now = database_now()
    ManagedObject.objects.filter(kind__in=list(objects)).exclude(_named(objects)).delete()
    ManagedObject.objects.bulk_create(
        [
            ManagedObject(kind=kind, name=name, written=settings, applied_from=source, applied_by=by, applied_at=now)
            for kind, found in objects.items()
            for name, settings in found.items()
        ],
        update_conflicts=True, unique_fields=("kind", "name"), update_fields=_WRITTEN,
    )  # fmt: skip


def update_marks(before: State, after: State) -> None:
    """Record the new settings of managed objects that `apply_config` changed; delete the records of removed objects.

    `before`, `after`: all settings before and after `apply_config`. If an object had drift before, its recorded
    settings are not changed, so that the drift is still found.
    """
    changed, gone = [], []
    for mark in ManagedObject.objects.all():
        kind = Kind(mark.kind)
        now = after[kind].get(mark.name)
        if mark.written != before[kind].get(mark.name):  # the object had drift before the apply
            continue
        if now is None:
            gone.append(mark.pk)
        elif mark.written != now:
            mark.written = now
            changed.append(mark)
    ManagedObject.objects.bulk_update(changed, ["written"])
    ManagedObject.objects.filter(pk__in=gone).delete()


def _named(objects: State) -> Q:
    found = Q(pk__in=[])
    for kind, names in objects.items():
        found |= Q(kind=kind, name__in=list(names))
    return found


def are_marked(objects: State) -> bool:
    """Return whether these objects, and no others, are recorded as managed with these settings, and all are locked."""
    rows = ManagedObject.objects.filter(kind__in=list(objects))
    held = {(row.kind, row.name): row for row in rows}
    wanted = {(kind.value, name): settings for kind, found in objects.items() for name, settings in found.items()}
    return held.keys() == wanted.keys() and all(
        held[key].written == settings and held[key].unlocked_at is None for key, settings in wanted.items()
    )


def find_mark(kind: Kind, name: str) -> ManagedObject | None:
    """Return the record of an object that a configuration file manages; None: no file manages the object."""
    return ManagedObject.objects.filter(kind=kind, name=name).first()


def unlock(mark: int, *, by: str, reason: str) -> bool:
    """Unlock a managed object, so that people may change it until the next `apply_config`.

    Return False if the object was unlocked before. `mark`: the id of the record that the object is managed.
    """
    with transaction.atomic():
        row = ManagedObject.objects.select_for_update().get(pk=mark)
        if row.unlocked_at is not None:
            return False
        row.unlocked_at, row.unlocked_by, row.unlock_reason = database_now(), by, reason
        row.save(update_fields=["unlocked_at", "unlocked_by", "unlock_reason"])
        named = {
            "dlq": DeadLetterQueue.objects.filter(name=row.name).first() if row.kind == Kind.DLQ else None,
            "rule": Rule.objects.filter(name=row.name).first() if row.kind == Kind.RULE else None,
            "target": Target.objects.filter(arn=row.name).first() if row.kind == Kind.TARGET else None,
        }
        told = {"unlocked": str(row), "applied_from": row.applied_from}
        AuditEntry.objects.create(act=AuditAct.UNLOCKED, by=by, reason=reason, after=told, **named)
        return True


def find_drift() -> list[Drift]:
    """Return the managed objects that differ from what the last `apply_config` wrote, or that a person unlocked."""
    marks = list(ManagedObject.objects.order_by("kind", "name"))
    now = state.read_state() if marks else {}
    found = []
    for mark in marks:
        kind = Kind(mark.kind)
        settings = now[kind].get(mark.name)
        change = compare(kind, mark.name, mark.written, settings)
        if change is not None or mark.unlocked_at is not None:
            found.append(Drift(mark, change, settings))
    return found
