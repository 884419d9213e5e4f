"""Store the queues and sources that discovery finds: one row for each queue, whatever number of sources it has."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Final, LiteralString

from django.db import transaction
from psycopg.types.json import Jsonb

from reprocessing.domain.dlqs.discovery import FailureSource, QueueReading, SourceKind
from reprocessing.domain.dlqs.expiry_risk import Risk, expiry_risk
from reprocessing.domain.message.arn import read, resource_name
from reprocessing.models.audit import AuditAct, AuditEntry
from reprocessing.models.discovery import DiscoveredQueue, DiscoveryStage
from reprocessing.store import rows
from reprocessing.store.dlqs import discovery_scopes
from reprocessing.store.dlqs.discovery_scopes import OpenLook
from reprocessing.store.notifications.discovery_events import NewDlq, announce_dlqs

# Sorted, so that two concurrent statements do not deadlock. A queue that one role cannot read keeps what another role
# has read. A discovery with a filter leaves the queue to the discovery that found it first.
_WRITE_QUEUES: Final[LiteralString] = """
INSERT INTO redrive_discovered_queue AS d
       (arn, url, scope_id, retention, visible, in_flight, tags, trouble, read_at, ignored_by, ignore_reason)
SELECT q.arn, q.url, %(scope)b::bigint, q.retention, q.visible, q.in_flight, q.tags, q.trouble, redrive_now(), '', ''
  FROM unnest(%(arns)b::text[], %(urls)b::text[], %(retentions)b::int[], %(visibles)b::bigint[],
              %(flights)b::bigint[], %(tags)b::jsonb[], %(troubles)b::text[])
       AS q(arn, url, retention, visible, in_flight, tags, trouble)
 ORDER BY q.arn
ON CONFLICT (arn) DO UPDATE
   SET url = excluded.url, scope_id = CASE WHEN %(filtered)b::bool THEN d.scope_id ELSE excluded.scope_id END,
       retention = excluded.retention, visible = excluded.visible, in_flight = excluded.in_flight,
       tags = coalesce(excluded.tags, d.tags), trouble = excluded.trouble, oldest_age = NULL, read_at = excluded.read_at
 WHERE excluded.trouble = '' OR d.trouble <> '' OR d.scope_id = excluded.scope_id
"""

_WRITE_SOURCES: Final[LiteralString] = """
INSERT INTO redrive_discovered_source AS d (dlq_arn, source_arn, through, kind, scope_id, seen_at)
SELECT DISTINCT s.dlq_arn, s.source_arn, s.through, s.kind, %(scope)b::bigint, redrive_now()
  FROM unnest(%(dlqs)b::text[], %(sources)b::text[], %(throughs)b::text[], %(kinds)b::text[])
       AS s(dlq_arn, source_arn, through, kind)
 ORDER BY 1, 2, 3
ON CONFLICT (dlq_arn, source_arn, through) DO UPDATE
   SET kind = excluded.kind, seen_at = excluded.seen_at,
       scope_id = CASE WHEN %(filtered)b::bool THEN d.scope_id ELSE excluded.scope_id END
"""

_WRITE_AGES: Final[LiteralString] = """
UPDATE redrive_discovered_queue q SET oldest_age = a.age
  FROM unnest(%(arns)b::text[], %(ages)b::float8[]) AS a(arn, age) WHERE q.arn = a.arn AND q.trouble = ''
"""

_READ: Final[LiteralString] = """
SELECT arn, url, tags, trouble <> '' AS is_unread, visible + in_flight > 0 AS has_messages,
       EXISTS (SELECT FROM redrive_discovered_source s WHERE s.dlq_arn = q.arn) AS is_dlq
  FROM redrive_discovered_queue q WHERE read_at >= %(began)b::timestamptz
"""

# Queues that this look's sources name, but that no look has read: they do not exist, or are in another account.
_UNLISTED: Final[LiteralString] = """
SELECT DISTINCT s.dlq_arn AS arn FROM redrive_discovered_source s
  LEFT JOIN redrive_discovered_queue q ON q.arn = s.dlq_arn
 WHERE s.scope_id = %(scope)b::bigint AND s.seen_at >= %(began)b::timestamptz
   AND (q.id IS NULL OR q.read_at < %(began)b::timestamptz AND (q.scope_id = s.scope_id OR q.trouble <> ''))
 ORDER BY 1
"""

# A source that the look has not seen is gone, unless the look could not read sources of its kind, or this source.
_DROP_SOURCES: Final[LiteralString] = """
DELETE FROM redrive_discovered_source s
 WHERE s.scope_id = %(scope)b::bigint AND s.seen_at < %(began)b::timestamptz AND s.kind = ANY(%(kinds)b::text[])
   AND NOT EXISTS (SELECT FROM redrive_discovered_queue q WHERE q.arn = s.source_arn AND q.trouble <> ''
                      AND q.read_at >= %(began)b::timestamptz)
"""

_DROP_QUEUES: Final[LiteralString] = """
DELETE FROM redrive_discovered_queue q
 WHERE q.scope_id = %(scope)b::bigint AND q.read_at < %(began)b::timestamptz AND q.ignored_at IS NULL
   AND NOT EXISTS (SELECT FROM redrive_discovered_source s WHERE s.dlq_arn = q.arn)
"""

_REPORT: Final[LiteralString] = """
UPDATE redrive_discovered_queue q SET reported_at = redrive_now()
 WHERE q.scope_id = %(scope)b::bigint AND q.reported_at IS NULL
   AND EXISTS (SELECT FROM redrive_discovered_source s WHERE s.dlq_arn = q.arn)
RETURNING q.arn, q.visible + q.in_flight AS messages,
          q.ignored_at IS NULL AND NOT EXISTS (SELECT FROM redrive_dlq d WHERE d.arn = q.arn) AS is_new,
          (SELECT count(*) FROM redrive_discovered_source s WHERE s.dlq_arn = q.arn) AS sources
"""

_LIST: Final[LiteralString] = """
SELECT q.id, q.arn, q.url, c.role_arn, c.region, q.tags, q.retention, q.visible, q.in_flight, q.oldest_age, q.trouble,
       q.read_at, coalesce(d.name, '') AS watched_as, q.ignored_at, q.ignored_by, q.ignore_reason, s.found
  FROM redrive_discovered_queue q JOIN redrive_discovery_scope c ON c.id = q.scope_id
  JOIN (SELECT dlq_arn, array_agg(source_arn || '|' || through || '|' || kind ORDER BY kind, source_arn, through)
               AS found FROM redrive_discovered_source GROUP BY dlq_arn) s ON s.dlq_arn = q.arn
  LEFT JOIN redrive_dlq d ON d.arn = q.arn
 ORDER BY q.arn
"""


@dataclass(frozen=True, slots=True)
class DiscoveredDlq:
    """A DLQ that discovery found. Numbers are None if the queue could not be read.

    Attributes:
        role_arn: the role that can read the queue; empty: the service's own.
        retention, oldest_age: seconds; the age is that at `read_at`.
        watched_as: the name of the registered DLQ; empty: it is not registered.
        found: the sources, as texts that `sources` reads.
    """

    id: int
    arn: str
    url: str
    role_arn: str
    region: str
    tags: dict[str, str] | None
    retention: int | None
    visible: int | None
    in_flight: int | None
    oldest_age: float | None
    trouble: str
    read_at: datetime
    watched_as: str
    ignored_at: datetime | None
    ignored_by: str
    ignore_reason: str
    found: list[str]

    @property
    def name(self) -> str:
        """The queue's name."""
        return resource_name(self.arn)

    @property
    def account(self) -> str:
        """The id of the queue's account."""
        arn = read(self.arn)
        return arn.account if arn else ""

    @property
    def status(self) -> str:
        """`watched`, `ignored` or `new`."""
        return "watched" if self.watched_as else "ignored" if self.ignored_at else "new"

    def risk(self, now: datetime) -> Risk:
        """Return when SQS drops the first message, if the queue has been left alone since it was read."""
        messages = None if self.visible is None else self.visible + (self.in_flight or 0)
        age = None if self.oldest_age is None else self.oldest_age + (now - self.read_at).total_seconds()
        return expiry_risk(
            messages=messages, retention=self.retention, oldest_age=age, fifo=self.name.endswith(".fifo")
        )

    @property
    def sources(self) -> list[FailureSource]:
        """The resources whose failed messages go to the queue."""
        parts = (text.split("|") for text in self.found)
        return [FailureSource(self.arn, source, SourceKind(kind), through) for source, through, kind in parts]


@dataclass(frozen=True, slots=True)
class ReadQueue:
    """A queue that was read since a look began."""

    arn: str
    url: str
    tags: dict[str, str] | None
    is_unread: bool
    has_messages: bool | None
    is_dlq: bool


@dataclass(frozen=True, slots=True)
class _Reported:
    arn: str
    messages: int | None
    is_new: bool
    sources: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LookPage:
    """One page of a look: what was read, and where the look goes on.

    Attributes:
        unread: see `DiscoveryScope`.
    """

    queues: Sequence[QueueReading] = ()
    sources: Collection[FailureSource] = ()
    stage: DiscoveryStage
    marker: str = ""
    unread: Sequence[tuple[str, str]] = ()


def store_page(look: OpenLook, page: LookPage) -> bool:
    """Store one page of a look. Return False if another process has leased the scope since."""

    def store() -> bool:
        if not discovery_scopes.advance(look, page.stage, page.marker, unread=page.unread):
            return False
        if page.queues:
            rows.execute(
                _WRITE_QUEUES, _of(look) | _queue_columns({queue.arn: queue for queue in page.queues}.values())
            )
        if page.sources:
            rows.execute(_WRITE_SOURCES, _of(look) | _source_columns(page.sources))
        return True

    return rows.in_transaction(store)


def queues_read(look: OpenLook) -> list[ReadQueue]:
    """Return the queues of the look's scope that were read since the look began, also before it was interrupted."""
    return [queue for queue in rows.fetch(ReadQueue, _READ, _of(look)) if look.scope.covers(queue.arn, queue.tags)]


def unlisted_dlqs(look: OpenLook) -> list[str]:
    """Return the ARNs of queues that sources of this look name, and that no look has read."""
    return rows.column(str, _UNLISTED, _of(look))


def store_ages(ages: dict[str, float]) -> None:
    """Store the age of the oldest message of queues, by ARN."""
    if ages:
        rows.execute(_WRITE_AGES, {"arns": list(ages), "ages": list(ages.values())})


def complete(look: OpenLook, *, read_kinds: Collection[SourceKind], every: float) -> bool:
    """End a look: delete what is gone, and announce new DLQs. False: another process has leased the scope since.

    The first look at a scope announces nothing: the person who asked for it sees the list.

    Args:
        look: the look that ends.
        read_kinds: the kinds of sources that the look could read.
        every: seconds until the next look, if the discovery is repeated.
    """
    return rows.in_transaction(partial(_complete, look, read_kinds, every))


def _complete(look: OpenLook, read_kinds: Collection[SourceKind], every: float) -> bool:
    if not discovery_scopes.end_look(look, every=every):
        return False
    rows.execute(_DROP_SOURCES, _of(look) | {"kinds": [kind.value for kind in read_kinds]})
    if SourceKind.QUEUE in read_kinds:
        rows.execute(_DROP_QUEUES, _of(look))
    found = rows.fetch(_Reported, _REPORT, {"scope": look.id})
    if not look.is_first:
        announce_dlqs([NewDlq(one.arn, one.messages, one.sources) for one in found if one.is_new])
    return True


def list_dlqs() -> list[DiscoveredDlq]:
    """Return all DLQs that discovery found, by ARN."""
    return rows.fetch(DiscoveredDlq, _LIST, {})


def set_ignored(arns: Collection[str], *, ignored: bool, by: str, reason: str) -> int:
    """Mark queues as ignored, or end that; return how many changed. Records it in the audit log."""
    with transaction.atomic():
        some = DiscoveredQueue.objects.select_for_update().filter(arn__in=arns, ignored_at__isnull=ignored)
        changed = sorted(some.values_list("arn", flat=True))
        now = rows.value(datetime, "SELECT redrive_now() AS now", {})
        DiscoveredQueue.objects.filter(arn__in=changed).update(
            ignored_at=now if ignored else None, ignored_by=by if ignored else "",
            ignore_reason=reason if ignored else "",
        )  # fmt: skip
        if changed:
            after = {"discovered_queues": changed, "ignored": ignored}
            AuditEntry.objects.create(act=AuditAct.CHANGED, by=by, reason=reason, after=after)
    return len(changed)


def _of(look: OpenLook) -> dict[str, object]:
    return {"scope": look.id, "began": look.began_at, "filtered": look.scope.is_filtered}


def _queue_columns(queues: Collection[QueueReading]) -> dict[str, object]:
    return {
        "arns": [queue.arn for queue in queues], "urls": [queue.url for queue in queues],
        "retentions": [queue.retention for queue in queues], "visibles": [queue.visible for queue in queues],
        "flights": [queue.in_flight for queue in queues], "troubles": [queue.trouble for queue in queues],
        "tags": [None if queue.tags is None else Jsonb(dict(queue.tags)) for queue in queues],
    }  # fmt: skip


def _source_columns(sources: Collection[FailureSource]) -> dict[str, object]:
    return {
        "dlqs": [source.dlq_arn for source in sources], "sources": [source.source_arn for source in sources],
        "throughs": [source.through for source in sources], "kinds": [source.kind.value for source in sources],
    }  # fmt: skip
