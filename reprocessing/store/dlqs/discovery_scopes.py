"""Store what discovery looks at. One process looks at a scope at a time: it holds the scope's lease, with a fence."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, LiteralString

from django.db import transaction
from psycopg.types.json import Jsonb

from reprocessing.domain.aws.iam_policy import ANY_RESOURCE, Purpose, ResourceUse
from reprocessing.domain.dlqs.discovery import Scope
from reprocessing.models.audit import AuditAct, AuditEntry
from reprocessing.models.discovery import DiscoveryScope, DiscoveryStage
from reprocessing.store import rows

#: Seconds of a lease. The scope of a killed process is free after this time.
LEASE: Final = 15.0
#: A look that began longer ago (s) does not go on: a new look begins.
_LONGEST_LOOK: Final = 6 * 3_600.0


@dataclass(frozen=True, slots=True)
class OpenLook:
    """A look at a scope by the holder of the lease with this fence.

    Attributes:
        began_at: when the look began; what was read since is not read again if the look was interrupted.
        unread: see `DiscoveryScope`.
        is_first: no look at the scope was ever complete.
    """

    id: int
    role_arn: str
    region: str
    prefix: str
    tags: dict[str, str]
    fence: int
    began_at: datetime
    stage: str
    marker: str
    unread: list[tuple[str, str]]
    is_first: bool

    @property
    def scope(self) -> Scope:
        """The account, region and filter."""
        return Scope(self.region, self.role_arn, self.prefix, self.tags)


_BEGIN: Final[LiteralString] = """
UPDATE redrive_discovery_scope s
   SET fence = s.fence + 1, leased_until = k.now + make_interval(secs => %(lease)b::float8),
       stage = CASE WHEN o.resumed THEN s.stage ELSE %(first)b END,
       marker = CASE WHEN o.resumed THEN s.marker ELSE '' END,
       unread = CASE WHEN o.resumed THEN s.unread ELSE '[]' END,
       began_at = CASE WHEN o.resumed THEN s.began_at ELSE k.now END
  FROM (SELECT redrive_now() AS now OFFSET 0) k
 CROSS JOIN LATERAL (
       SELECT c.id, c.stage <> '' AND c.began_at > k.now - make_interval(secs => %(longest)b::float8) AS resumed
         FROM redrive_discovery_scope c WHERE c.id = %(scope)b::bigint FOR UPDATE) o
 WHERE s.id = o.id AND (s.leased_until IS NULL OR s.leased_until <= k.now)
RETURNING s.id, s.role_arn, s.region, s.prefix, s.tags, s.fence, s.began_at, s.stage, s.marker, s.unread,
          s.looked_at IS NULL AS is_first
"""

_KEEP: Final[LiteralString] = """
UPDATE redrive_discovery_scope SET leased_until = redrive_now() + make_interval(secs => %(lease)b::float8)
 WHERE id = %(scope)b::bigint AND fence = %(fence)b::bigint AND leased_until IS NOT NULL
"""

_ADVANCE: Final[LiteralString] = """
UPDATE redrive_discovery_scope
   SET leased_until = redrive_now() + make_interval(secs => %(lease)b::float8), stage = %(stage)b, marker = %(marker)b,
       unread = unread || %(unread)b::jsonb
 WHERE id = %(scope)b::bigint AND fence = %(fence)b::bigint AND leased_until IS NOT NULL
"""

_RELEASE: Final[LiteralString] = """
UPDATE redrive_discovery_scope SET leased_until = NULL WHERE id = %(scope)b::bigint AND fence = %(fence)b::bigint
"""

_END: Final[LiteralString] = """
UPDATE redrive_discovery_scope
   SET stage = '', marker = '', leased_until = NULL, looked_at = redrive_now(),
       next_at = CASE WHEN daily THEN redrive_now() + make_interval(secs => %(every)b::float8) END
 WHERE id = %(scope)b::bigint AND fence = %(fence)b::bigint AND leased_until IS NOT NULL
"""

# A look that was interrupted is due again as soon as its lease is over.
_DUE: Final[LiteralString] = """
SELECT id FROM redrive_discovery_scope
 WHERE next_at <= redrive_now() AND (leased_until IS NULL OR leased_until <= redrive_now()) ORDER BY next_at, id
"""

# Of a scope that is removed, another scope of the same account and region keeps the queues: marks as ignored stay.
_HEIR: Final[LiteralString] = """
SELECT DISTINCT ON (old.id) old.id AS old_id, heir.id AS heir_id
  FROM redrive_discovery_scope old JOIN redrive_discovery_scope heir
    ON heir.role_arn = old.role_arn AND heir.region = old.region
 WHERE old.id = ANY(%(scopes)b::bigint[]) AND heir.id <> ALL(%(scopes)b::bigint[])
 ORDER BY old.id, heir.prefix = '' DESC, heir.id
"""
_HAND_OVER_QUEUES: Final[LiteralString] = f"""
UPDATE redrive_discovered_queue q SET scope_id = h.heir_id FROM ({_HEIR}) h WHERE q.scope_id = h.old_id
"""  # noqa: S608  # the inserted text is constant
_HAND_OVER_SOURCES: Final[LiteralString] = f"""
UPDATE redrive_discovered_source s SET scope_id = h.heir_id FROM ({_HEIR}) h WHERE s.scope_id = h.old_id
"""  # noqa: S608  # the inserted text is constant


def add_scope(scope: Scope) -> int:
    """Return the id of the scope's row, which is added if it does not exist."""
    key: dict[str, Any] = {"role_arn": scope.role, "region": scope.region, "prefix": scope.prefix}
    row, _ = DiscoveryScope.objects.get_or_create(**key, tags=dict(scope.tags))
    return row.pk


def required_permissions(scopes: Collection[Scope]) -> Iterator[ResourceUse]:
    """Yield what discovery reads in these scopes: each use needs IAM permissions. Some come twice."""
    purposes = (
        Purpose.DISCOVER_QUEUES, Purpose.DISCOVER_FUNCTIONS, Purpose.DISCOVER_SUBSCRIPTIONS, Purpose.DISCOVER_RULES,
        Purpose.DISCOVER_AGES,
    )  # fmt: skip
    for scope in scopes:
        also = (Purpose.DISCOVER_TAGS,) if scope.tags else ()
        yield from (ResourceUse(one, ANY_RESOURCE, scope.role, within=scope.region) for one in (*purposes, *also))


def find_scopes(scopes: Collection[Scope]) -> list[DiscoveryScope]:
    """Return the rows of those scopes that have one, ordered as people read them."""
    return [row for row in all_scopes() if row.scope in scopes]


def all_scopes() -> list[DiscoveryScope]:
    """Return all scopes, ordered as people read them."""
    return sorted(DiscoveryScope.objects.all(), key=lambda row: row.scope.words)


def begin_look(scope_id: int) -> OpenLook | None:
    """Lease a scope, and begin a look or go on with an interrupted look; None: another process looks at it."""
    first = DiscoveryStage.QUEUES.value
    return rows.first(OpenLook, _BEGIN, {"scope": scope_id, "lease": LEASE, "longest": _LONGEST_LOOK, "first": first})


def keep_lease(look: OpenLook) -> bool:
    """Renew the lease; return False if another process has leased the scope since."""
    return rows.execute(_KEEP, {"scope": look.id, "fence": look.fence, "lease": LEASE}) == 1


def advance(look: OpenLook, stage: DiscoveryStage, marker: str = "", *, unread: Sequence[tuple[str, str]] = ()) -> bool:
    """Record where the look goes on, and what could not be read; renew the lease. False as in `keep_lease`."""
    values = {"scope": look.id, "fence": look.fence, "lease": LEASE, "stage": stage.value, "marker": marker}
    return rows.execute(_ADVANCE, values | {"unread": Jsonb(list(unread))}) == 1


def release(look: OpenLook) -> None:
    """Give the lease back before the look is complete."""
    rows.execute(_RELEASE, {"scope": look.id, "fence": look.fence})


def end_look(look: OpenLook, *, every: float) -> bool:
    """Record that the look is complete; `every`: seconds until a repeated look. False as in `keep_lease`."""
    return rows.execute(_END, {"scope": look.id, "fence": look.fence, "every": every}) == 1


def due_scopes() -> list[int]:
    """Return the ids of the scopes at which beat must look now."""
    return rows.column(int, _DUE, {})


def looked_at(scope_id: int) -> datetime | None:
    """Return when the last look at a scope was complete; None: never, or the scope is gone."""
    return DiscoveryScope.objects.filter(pk=scope_id).values_list("looked_at", flat=True).first()


def set_daily(scopes: Collection[Scope], *, daily: bool, by: str, reason: str) -> None:
    """Let beat repeat the discovery of these scopes, at first now; or end that. Records it in the audit log."""
    with transaction.atomic():
        ids = [add_scope(scope) for scope in scopes]
        now = rows.value(datetime, "SELECT redrive_now() AS now", {})
        DiscoveryScope.objects.filter(pk__in=ids).update(daily=daily, next_at=now if daily else None)
        _record(scopes, {"daily": daily}, by, reason)


def look_soon(by: str, reason: str) -> int:
    """Let beat look at all scopes now; return how many there are."""
    with transaction.atomic():
        now = rows.value(datetime, "SELECT redrive_now() AS now", {})
        found = DiscoveryScope.objects.update(next_at=now)
        _record([row.scope for row in all_scopes()], {"look": "now"}, by, reason)
    return found


def forget(scopes: Collection[Scope], *, by: str, reason: str) -> int:
    """Delete these scopes with what was found there; return how many there were. DLQs that were added stay."""
    with transaction.atomic():
        rows_there = find_scopes(scopes)
        known = [row.pk for row in rows_there]
        rows.execute(_HAND_OVER_QUEUES, {"scopes": known})
        rows.execute(_HAND_OVER_SOURCES, {"scopes": known})
        DiscoveryScope.objects.filter(pk__in=known).delete()
        if known:
            _record([row.scope for row in rows_there], {"removed": True}, by, reason)
    return len(known)


def _record(scopes: Collection[Scope], after: dict[str, Any], by: str, reason: str) -> None:
    words = "; ".join(sorted(scope.words for scope in scopes))
    AuditEntry.objects.create(act=AuditAct.CHANGED, by=by, reason=reason, after={"discovery": words, **after})
