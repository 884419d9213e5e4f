"""Check PostgreSQL: its version, migrations, tables, clock, and whether sends are stopped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Final

from reprocessing.domain.maintenance.findings import (
    DoctorFinding,
    error_finding,
    note_finding,
    ok_finding,
    warning_finding,
)
from reprocessing.store.maintenance import database_checks, restore_hold, schema
from reprocessing.store.safety import stops

_NAME: Final = "PostgreSQL"
_OLDEST: Final = 14  #: the oldest version that Django 5.2 supports (Django: Databases, PostgreSQL notes)
_NAMED: Final = 5  #: most migrations or parts of the schema that a finding names; the rest are counted
_OWN: Final = timedelta(seconds=1)  #: largest difference between redrive_now() and the server's clock without a finding


def findings() -> Iterator[DoctorFinding]:
    """Yield findings about PostgreSQL: its version, migrations and clock, and whether sends are stopped.

    Raises:
        django.db.Error: PostgreSQL does not answer.
    """
    if unusable := _unmigrated() or _dismantled():
        yield unusable
        return  # the other checks need tables that migrations create
    found = database_checks.read_server()
    version = found.version // 10_000
    if version < _OLDEST:
        why = "This version of Django does not support it."
        yield error_finding(_NAME, f"It is version {version}.", why, f"Move to version {_OLDEST} or later.")
    else:
        yield ok_finding(_NAME, f"version {version}, all migrations applied.")
    if abs(found.ours - found.now) > _OWN:
        by = (found.ours - found.now).total_seconds()
        why = "Leases and deadlines use redrive_now(): with a wrong clock they end too early or too late."
        cure = "Somebody replaced this function. Restore its body: SELECT clock_timestamp()."
        yield error_finding(_NAME, f"redrive_now() is {by:+,.1f} s from the server's clock.", why, cure)
    yield from _stops()
    if not database_checks.has_dlqs():
        yield note_finding("every DLQ", "None has been added yet.", "manage.py add_dlq NAME --url URL --confirm")


def _unmigrated() -> DoctorFinding | None:
    if not (missing := database_checks.pending_migrations()):
        return None
    why = "Commands and workers fail, since the tables are of another version."
    return error_finding(_NAME, f"Migrations are not applied: {_named(missing)}.", why, "manage.py migrate")


def _dismantled() -> DoctorFinding | None:
    if not (missing := schema.missing_objects()):
        return None
    what = f"Migrations are recorded as applied, but these objects are missing: {_named(missing)}."
    why = "Somebody dropped or disabled them: statements fail, or messages are not protected."
    cure = (
        "Stop the workers. Lost rows come back only from a backup (docs/runbook.md). The SQL that "
        "created the objects: manage.py sqlmigrate reprocessing 0001"
    )
    return error_finding(_NAME, what, why, cure)


def _named(migrations: Sequence[str]) -> str:
    more = len(migrations) - _NAMED
    return ", ".join(migrations[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def _stops() -> Iterator[DoctorFinding]:
    if held := restore_hold.current_hold():
        what = f'Everything is held by {held.by} since a restore: "{held.reason}".'
        yield warning_finding(
            "every DLQ", what, "Nothing is sent until a person has decided.", "manage.py after_restore report"
        )
    elif halt := stops.stop_of(None):
        what = f'Everything is stopped by {halt.by} since {halt.since:%Y-%m-%d %H:%M} UTC: "{halt.reason}".'
        yield warning_finding(
            "every DLQ", what, "Nothing is sent.", "manage.py resume_redrive --all --reason WHY --confirm"
        )
