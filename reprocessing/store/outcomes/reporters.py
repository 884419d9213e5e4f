"""Add, change and revoke reporters (consumers that report outcomes), and find a reporter by its token."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from django.db import transaction

from reprocessing.domain.errors import InvalidReporter
from reprocessing.models.audit import AuditAct, AuditEntry
from reprocessing.models.target import Reporter, Target
from reprocessing.store import rows
from reprocessing.store.ordering.lanes import database_now
from reprocessing.store.secret_tokens import can_be_token, new_token, token_digest

_PREFIX: Final = "redrive-"

# One step in the index of reports by reporter and time for each reporter. With max(), or with an equality in the inner
# query, PostgreSQL may read all reports: those of a reporter that never reported are nowhere in the index of times.
_LAST_REPORTS = """
SELECT r.id AS reporter, l.received_at AS at
  FROM redrive_reporter r CROSS JOIN LATERAL (
           SELECT p.reporter_id, p.received_at FROM redrive_report p WHERE p.reporter_id <= r.id
            ORDER BY p.reporter_id DESC, p.received_at DESC LIMIT 1) l
 WHERE l.reporter_id = r.id
"""


@dataclass(frozen=True, slots=True)
class _LastReport:
    reporter: int
    at: datetime


@dataclass(frozen=True, slots=True)
class SavedReporter:
    """The result of `save_reporter`. `new`: the reporter was added; else an existing reporter was changed.

    `token`: the new token, which is shown once and not stored; None: the token is unchanged.
    """

    new: bool
    token: str | None = field(repr=False)


def last_reports() -> dict[int, datetime]:
    """Return when each reporter last reported, by its id. Reporters that never reported are left out."""
    return {row.reporter: row.at for row in rows.fetch(_LastReport, _LAST_REPORTS, {})}


def by_token(token: str) -> Reporter | None:
    """Return the reporter with this token, revoked or not; None: there is none.

    The token is looked up by its digest.
    """
    return Reporter.objects.filter(token_hash=token_digest(token)).first() if can_be_token(token) else None


def resolve_targets(names: Collection[str]) -> list[Target]:
    """Return the targets with these ARNs, URLs or names; raise InvalidReporter if a name is unknown or ambiguous."""
    known = list(Target.objects.order_by("arn"))
    return [_target(name, known) for name in dict.fromkeys(names)]


def _target(name: str, known: Collection[Target]) -> Target:
    found = [row for row in known if name in {row.arn, row.url}] or [row for row in known if str(row) == name]
    if len(found) != 1:
        there_are = ", ".join(row.arn for row in found or known)
        there_are = there_are or "none; add one: manage.py add_dlq NAME --url URL --confirm"
        raise InvalidReporter(
            f'{"More than one target is" if found else "No target is"} named "{name}". There are: {there_are}.'
        )
    return found[0]


def save_reporter(name: str, some: Collection[Target], *, anew: bool, by: str, reason: str) -> SavedReporter:
    """Add or change a reporter, with an audit log entry. Raises InvalidReporter if `check_reporter` does.

    `some`: the targets whose messages the reporter may report on; empty: its targets are not changed. `anew`: create a
    new token, which replaces the old token.
    """
    with transaction.atomic():
        row = Reporter.objects.select_for_update().filter(name=name).first()
        check_reporter(row, name, some, anew=anew)
        token = new_token(_PREFIX) if row is None or anew else None
        before = {} if row is None else audit_values(row)
        if row is None:
            row = Reporter(name=name, added_by=by)
        if token is not None:
            row.token_hash, row.revoked_at = token_digest(token), None
        row.save()
        if some:
            row.targets.set(some)
        after = audit_values(row) | ({"token": "new"} if token else {})
        act = AuditAct.CHANGED if before else AuditAct.ADDED
        AuditEntry.objects.create(act=act, by=by, reason=reason, before=before, after=after)
    return SavedReporter(new=not before, token=token)


def check_reporter(row: Reporter | None, name: str, some: Collection[Target], *, anew: bool) -> None:
    """Raise InvalidReporter if the reporter would have no target, or was revoked and gets no new token."""
    if row is None and not some:
        raise InvalidReporter(f"{name} could not report on any message. Name its targets: --target ARN.")
    if row is not None and row.revoked_at is not None and not anew:
        raise InvalidReporter(f"{name} was revoked. To accept its reports again, create a new token: --new-token.")


def revoke(name: str, *, by: str, reason: str) -> bool:
    """Revoke a reporter, so that its reports are no longer accepted or applied; return False if it was revoked before.

    Raises InvalidReporter if there is no reporter with this name.
    """
    with transaction.atomic():
        row = find_reporter(name, locked=True)
        if row.revoked_at is not None:
            return False
        before = audit_values(row)
        row.revoked_at = database_now()
        row.save(update_fields=["revoked_at"])
        AuditEntry.objects.create(act=AuditAct.CHANGED, by=by, reason=reason, before=before, after=audit_values(row))
    return True


def find_reporter(name: str, *, locked: bool = False) -> Reporter:
    """Return the reporter with this name; `locked`: lock its row.

    Raises InvalidReporter, which lists the known names, if there is no such reporter.
    """
    every = Reporter.objects.select_for_update() if locked else Reporter.objects.all()
    if (found := every.filter(name=name).first()) is None:
        known = ", ".join(Reporter.objects.order_by("name").values_list("name", flat=True))
        add = "None has been added yet. Add one: manage.py add_reporter NAME --target TARGET --confirm"
        raise InvalidReporter(f'No reporter is named "{name}". {f"There are: {known}." if known else add}')
    return found


def audit_values(row: Reporter) -> dict[str, object]:
    """Return the fields of a reporter that the audit log records."""
    return {
        "reporter": row.name,
        "targets": sorted(row.targets.values_list("arn", flat=True)),
        "revoked": row.revoked_at is not None,
    }
