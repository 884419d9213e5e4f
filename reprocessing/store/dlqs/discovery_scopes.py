"""Store in which scopes (role, region and filter) DLQs are discovered, and how far the scan of each scope is.

A process leases a scope to scan it.
"""

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

#: Length of a lease (s). After this time, another process may continue the scan of a killed process.
LEASE: Final = 15.0
#: Seconds after its beginning for which an interrupted scan may be continued; later, a new scan begins.
_LONGEST_SCAN: Final = 6 * 3_600.0


@dataclass(frozen=True, slots=True)
class OpenScan:
    """A scan in progress. Only the process whose lease has this `fence` continues it.

    Attributes:
        began_at: when the scan began. If the scan was interrupted, queues that it read since then are not read again.
        stage, marker: the kind of resource that is read next, and AWS's position in its list.
        unread: what could not be read. Each pair has a `SourceKind` (or an empty text) and a sentence with the reason.
        is_first: no earlier scan of the scope was complete.
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
        """The role, region and filter with which the scan reads."""
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
          s.scanned_at IS NULL AS is_first
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
   SET stage = '', marker = '', leased_until = NULL, scanned_at = redrive_now(),
       next_at = CASE WHEN daily THEN redrive_now() + make_interval(secs => %(every)b::float8) END
 WHERE id = %(scope)b::bigint AND fence = %(fence)b::bigint AND leased_until IS NOT NULL
"""

# The scan of a killed process is due again when its lease ends.
_DUE: Final[LiteralString] = """
SELECT id FROM redrive_discovery_scope
 WHERE next_at <= redrive_now() AND (leased_until IS NULL OR leased_until <= redrive_now()) ORDER BY next_at, id
"""

# The queues of a deleted scope go to another scope of the same role and region, so that ignored queues stay ignored.
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
    """Return the id of the scope's row. Insert the row if it does not exist."""
    key: dict[str, Any] = {"role_arn": scope.role, "region": scope.region, "prefix": scope.prefix}
    row, _ = DiscoveryScope.objects.get_or_create(**key, tags=dict(scope.tags))
    return row.pk


def required_permissions(scopes: Collection[Scope]) -> Iterator[ResourceUse]:
    """Yield the AWS resources that discovery reads in these scopes, for an IAM policy. A resource may be repeated."""
    purposes = (
        Purpose.DISCOVER_QUEUES, Purpose.DISCOVER_FUNCTIONS, Purpose.DISCOVER_SUBSCRIPTIONS, Purpose.DISCOVER_RULES,
        Purpose.DISCOVER_AGES,
    )  # fmt: skip
    for scope in scopes:
        also = (Purpose.DISCOVER_TAGS,) if scope.tags else ()
        yield from (
            ResourceUse(purpose, ANY_RESOURCE, scope.role, within=scope.region) for purpose in (*purposes, *also)
        )


def find_scopes(scopes: Collection[Scope]) -> list[DiscoveryScope]:
    """Return the stored rows of these scopes, sorted by their description (`Scope.words`)."""
    return [row for row in all_scopes() if row.scope in scopes]


def all_scopes() -> list[DiscoveryScope]:
    """Return the rows of all scopes, sorted by their description (`Scope.words`)."""
    return sorted(DiscoveryScope.objects.all(), key=lambda row: row.scope.words)


def begin_scan(scope_id: int) -> OpenScan | None:
    """Lease a scope, and begin or continue its scan. None: another process scans it, or the scope was deleted."""
    first = DiscoveryStage.QUEUES.value
    return rows.first(OpenScan, _BEGIN, {"scope": scope_id, "lease": LEASE, "longest": _LONGEST_SCAN, "first": first})


def keep_lease(scan: OpenScan) -> bool:
    """Renew a scan's lease. Return False if another process has leased the scope, or the scope was deleted."""
    return rows.execute(_KEEP, {"scope": scan.id, "fence": scan.fence, "lease": LEASE}) == 1


def advance(scan: OpenScan, stage: DiscoveryStage, marker: str = "", *, unread: Sequence[tuple[str, str]] = ()) -> bool:
    """Store a scan's progress, and what it could not read, and renew its lease. Return False if the lease is lost.

    `stage`: the kind of resource with which the scan continues. `marker`: AWS's position in the list of this kind.
    """
    values = {"scope": scan.id, "fence": scan.fence, "lease": LEASE, "stage": stage.value, "marker": marker}
    return rows.execute(_ADVANCE, values | {"unread": Jsonb(list(unread))}) == 1


def release(scan: OpenScan) -> None:
    """End the lease of a scan that is not complete."""
    rows.execute(_RELEASE, {"scope": scan.id, "fence": scan.fence})


def end_scan(scan: OpenScan, *, every: float) -> bool:
    """Record that the scan is complete; return False if its lease is lost. `every`: seconds to the next daily scan."""
    return rows.execute(_END, {"scope": scan.id, "fence": scan.fence, "every": every}) == 1


def due_scopes() -> list[int]:
    """Return the ids of the scopes that must be scanned now, and that no process is scanning."""
    return rows.column(int, _DUE, {})


def last_scan(scope_id: int) -> datetime | None:
    """Return when the last complete scan of a scope ended; None: there is none, or the scope was deleted."""
    return DiscoveryScope.objects.filter(pk=scope_id).values_list("scanned_at", flat=True).first()


def set_daily(scopes: Collection[Scope], *, daily: bool, by: str, reason: str) -> None:
    """Start or stop the daily scans of these scopes, with an audit log entry. The first scan is due now."""
    with transaction.atomic():
        ids = [add_scope(scope) for scope in scopes]
        now = rows.value(datetime, "SELECT redrive_now() AS now", {})
        DiscoveryScope.objects.filter(pk__in=ids).update(daily=daily, next_at=now if daily else None)
        _record(scopes, {"daily": daily}, by, reason)


def request_scans(by: str, reason: str) -> int:
    """Make the scans of all scopes due now, with an audit log entry; return the number of scopes."""
    with transaction.atomic():
        now = rows.value(datetime, "SELECT redrive_now() AS now", {})
        found = DiscoveryScope.objects.update(next_at=now)
        _record([row.scope for row in all_scopes()], {"scan": "now"}, by, reason)
    return found


def forget(scopes: Collection[Scope], *, by: str, reason: str) -> int:
    """Delete these scopes (each a role, region and filter); return how many. Nothing is deleted in SQS.

    The rows of queues that were discovered in a deleted scope are deleted, unless another scope has the same role and
    region. Registered DLQs stay.
    """
    with transaction.atomic():
        found = find_scopes(scopes)
        ids = [row.pk for row in found]
        rows.execute(_HAND_OVER_QUEUES, {"scopes": ids})
        rows.execute(_HAND_OVER_SOURCES, {"scopes": ids})
        DiscoveryScope.objects.filter(pk__in=ids).delete()
        if found:
            _record([row.scope for row in found], {"removed": True}, by, reason)
    return len(found)


def _record(scopes: Collection[Scope], after: dict[str, Any], by: str, reason: str) -> None:
    words = "; ".join(sorted(scope.words for scope in scopes))
    AuditEntry.objects.create(act=AuditAct.CHANGED, by=by, reason=reason, after={"discovery": words, **after})
