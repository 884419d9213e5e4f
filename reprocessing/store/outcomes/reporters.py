"""Who may report: how a reporter is added, changed and revoked, and known by its token; each with who and why."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Collection
from dataclasses import dataclass, field

from django.db import transaction

from reprocessing.domain.errors import ReporterIsUnclear
from reprocessing.models.audit import Act, Review
from reprocessing.models.report import Reporter
from reprocessing.models.target import Target
from reprocessing.store.ordering.lanes import clock

#: By which people, and scanners of secrets, know a token; and its random bytes.
PREFIX, BYTES = "redrive-", 32
_LONGEST = 200


@dataclass(frozen=True, slots=True)
class Added:
    """What was done. `token`: printed once, kept nowhere; None: the one there was still holds."""

    new: bool
    token: str | None = field(repr=False)


def of(token: str) -> Reporter | None:
    """Whose token this is, revoked or not.

    It is looked for by its digest: how long that takes tells nothing of the tokens there are.
    """
    if not token or len(token) > _LONGEST:
        return None
    return Reporter.objects.filter(token_hash=_digest(token)).first()


def targets(names: Collection[str]) -> list[Target]:
    """The targets of these ARNs or URLs, or of names that only one of them has.

    Raises:
        ReporterIsUnclear: there is none, or more than one; it says which name that is.
    """
    known = list(Target.objects.order_by("arn"))
    return [_target(name, known) for name in dict.fromkeys(names)]


def _target(name: str, known: Collection[Target]) -> Target:
    found = [one for one in known if name in {one.arn, one.url}] or [one for one in known if str(one) == name]
    if len(found) != 1:
        there_are = (
            ", ".join(one.arn for one in found or known) or "none; add one: manage.py add_dlq NAME --url URL --confirm"
        )
        raise ReporterIsUnclear(
            f'{"More than one target is" if found else "No target is"} named "{name}". There are: {there_are}.'
        )
    return found[0]


def put(name: str, some: Collection[Target], *, anew: bool, by: str, reason: str) -> Added:
    """Add the reporter of this name; or change it: its targets where any are named, its token when it gets one `anew`.

    Raises:
        ReporterIsUnclear: it has no target, or was revoked and gets no new token.
    """
    with transaction.atomic():
        row = Reporter.objects.select_for_update().filter(name=name).first()
        check(row, name, some, anew=anew)
        token = PREFIX + secrets.token_urlsafe(BYTES) if row is None or anew else None
        before = {} if row is None else told(row)
        if row is None:
            row = Reporter(name=name, added_by=by)
        if token is not None:
            row.token_hash, row.revoked_at = _digest(token), None
        row.save()
        if some:
            row.targets.set(some)
        after = told(row) | ({"token": "new"} if token else {})
        act = Act.CHANGED if before else Act.ADDED
        Review.objects.create(act=act, by=by, reason=reason, before=before, after=after)
    return Added(new=not before, token=token)


def check(row: Reporter | None, name: str, some: Collection[Target], *, anew: bool) -> None:
    """Whether this can be done.

    Raises:
        ReporterIsUnclear: as `put`.
    """
    if row is None and not some:
        raise ReporterIsUnclear(f"{name} would be heard on nothing. Say whose letters it speaks of: --target ARN.")
    if row is not None and row.revoked_at is not None and not anew:
        raise ReporterIsUnclear(f"{name} was revoked. It is heard again with a new token: --new-token.")


def revoke(name: str, *, by: str, reason: str) -> bool:
    """Hear this reporter no more, nor what it said of messages that are not known yet; whether it was heard before.

    Raises:
        ReporterIsUnclear: there is none of this name.
    """
    with transaction.atomic():
        row = find(name, locked=True)
        if row.revoked_at is not None:
            return False
        before = told(row)
        row.revoked_at = clock()
        row.save(update_fields=["revoked_at"])
        Review.objects.create(act=Act.CHANGED, by=by, reason=reason, before=before, after=told(row))
    return True


def find(name: str, *, locked: bool = False) -> Reporter:
    """The reporter of this name.

    Raises:
        ReporterIsUnclear: there is none; it names those there are.
    """
    rows = Reporter.objects.select_for_update() if locked else Reporter.objects.all()
    found = rows.filter(name=name).first()
    if found is None:
        known = ", ".join(Reporter.objects.order_by("name").values_list("name", flat=True))
        there_are = (
            f"There are: {known}."
            if known
            else "None has been added yet. Add one: manage.py add_reporter NAME --target TARGET --confirm"
        )
        raise ReporterIsUnclear(f'No reporter is named "{name}". {there_are}')
    return found


def told(row: Reporter) -> dict[str, object]:
    """A reporter as a review records it."""
    return {
        "reporter": row.name,
        "targets": sorted(row.targets.values_list("arn", flat=True)),
        "revoked": row.revoked_at is not None,
    }


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="replace")).digest()
