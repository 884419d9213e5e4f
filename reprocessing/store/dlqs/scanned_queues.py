"""Store what a scan of discovery reads: queues, and their sources (resources whose failed messages go to a queue)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, LiteralString

from psycopg.types.json import Jsonb

from reprocessing.domain.dlqs.discovery import FailureSource, QueueReading, SourceKind
from reprocessing.models.discovery import DiscoveryStage
from reprocessing.store import rows
from reprocessing.store.dlqs import discovery_scopes
from reprocessing.store.dlqs.discovery_scopes import OpenScan
from reprocessing.store.notifications.discovery_events import NewDlq, announce_dlqs

# Sorted, so that two concurrent statements do not deadlock. If one role cannot read a queue, the values that another
# role has read stay. A scope with a filter does not take a queue from the scope that found it first.
_WRITE_QUEUES: Final[LiteralString] = """
INSERT INTO redrive_discovered_queue AS d
       (arn, url, scope_id, retention, visible, in_flight, tags, last_error, read_at, ignored_by, ignore_reason)
SELECT q.arn, q.url, %(scope)b::bigint, q.retention, q.visible, q.in_flight, q.tags, q.last_error, redrive_now(), '', ''
  FROM unnest(%(arns)b::text[], %(urls)b::text[], %(retentions)b::int[], %(visibles)b::bigint[],
              %(flights)b::bigint[], %(tags)b::jsonb[], %(last_errors)b::text[])
       AS q(arn, url, retention, visible, in_flight, tags, last_error)
 ORDER BY q.arn
ON CONFLICT (arn) DO UPDATE
   SET url = excluded.url, scope_id = CASE WHEN %(filtered)b::bool THEN d.scope_id ELSE excluded.scope_id END,
       retention = excluded.retention, visible = excluded.visible, in_flight = excluded.in_flight,
       tags = coalesce(excluded.tags, d.tags), last_error = excluded.last_error, oldest_age = NULL,
       read_at = excluded.read_at
 WHERE excluded.last_error = '' OR d.last_error <> '' OR d.scope_id = excluded.scope_id
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
  FROM unnest(%(arns)b::text[], %(ages)b::float8[]) AS a(arn, age) WHERE q.arn = a.arn AND q.last_error = ''
"""

_READ: Final[LiteralString] = """
SELECT q.arn, q.url, q.tags, c.role_arn, q.last_error <> '' AS is_unread, q.visible + q.in_flight > 0 AS has_messages,
       EXISTS (SELECT FROM redrive_discovered_source s WHERE s.dlq_arn = q.arn) AS is_dlq
  FROM redrive_discovered_queue q JOIN redrive_discovery_scope c ON c.id = q.scope_id
 WHERE q.read_at >= %(began)b::timestamptz
"""

# Queues that sources of this scan name as their DLQ, but that SQS did not list: deleted, or in another account.
_UNLISTED: Final[LiteralString] = """
SELECT DISTINCT s.dlq_arn AS arn FROM redrive_discovered_source s
  LEFT JOIN redrive_discovered_queue q ON q.arn = s.dlq_arn
 WHERE s.scope_id = %(scope)b::bigint AND s.seen_at >= %(began)b::timestamptz
   AND (q.id IS NULL OR q.read_at < %(began)b::timestamptz AND (q.scope_id = s.scope_id OR q.last_error <> ''))
 ORDER BY 1
"""

# A source that the scan did not see was deleted, unless the scan could not read it, its kind, or its DLQ.
_DROP_SOURCES: Final[LiteralString] = """
DELETE FROM redrive_discovered_source s
 WHERE s.scope_id = %(scope)b::bigint AND s.seen_at < %(began)b::timestamptz AND s.kind = ANY(%(kinds)b::text[])
   AND NOT EXISTS (SELECT FROM redrive_discovered_queue q WHERE q.arn IN (s.source_arn, s.dlq_arn)
                      AND q.last_error <> '' AND q.read_at >= %(began)b::timestamptz)
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


@dataclass(frozen=True, slots=True)
class ReadQueue:
    """A queue that was read since a scan began.

    `role_arn`: role with which the queue was read; empty: the service's own role. `is_unread`: the role could not read
    the queue. `is_dlq`: a source names the queue as its DLQ.
    """

    arn: str
    url: str
    tags: dict[str, str] | None
    role_arn: str
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
class ScanPage:
    """One page of a scan: what was read, and the stage and position (`marker`) with which the scan continues.

    `unread`: what could not be read. Each pair has a `SourceKind` (or an empty text) and a sentence with the reason.
    """

    queues: Sequence[QueueReading] = ()
    sources: Collection[FailureSource] = ()
    stage: DiscoveryStage
    marker: str = ""
    unread: Sequence[tuple[str, str]] = ()


def store_page(scan: OpenScan, page: ScanPage) -> bool:
    """Store one page of a scan, and renew its lease. Return False if the lease is lost; then nothing is stored."""

    def store() -> bool:
        if not discovery_scopes.advance(scan, page.stage, page.marker, unread=page.unread):
            return False
        if page.queues:
            rows.execute(
                _WRITE_QUEUES, _scan_values(scan) | _queue_columns({queue.arn: queue for queue in page.queues}.values())
            )
        if page.sources:
            rows.execute(_WRITE_SOURCES, _scan_values(scan) | _source_columns(page.sources))
        return True

    return rows.in_transaction(store)


def queues_read(scan: OpenScan) -> list[ReadQueue]:
    """Return the queues of the scan's scope that were read since the scan began."""
    read_since = rows.fetch(ReadQueue, _READ, _scan_values(scan))
    return [queue for queue in read_since if scan.scope.covers(queue.arn, queue.tags, queue.role_arn)]


def unlisted_dlqs(scan: OpenScan) -> list[str]:
    """Return the ARNs of queues that sources of this scan name as their DLQ, but that SQS did not list."""
    return rows.column(str, _UNLISTED, _scan_values(scan))


def store_ages(ages: dict[str, float]) -> None:
    """Store the age (s) of each queue's oldest message. `ages`: by the queue's ARN."""
    if ages:
        rows.execute(_WRITE_AGES, {"arns": list(ages), "ages": list(ages.values())})


def complete(scan: OpenScan, *, read_kinds: Collection[SourceKind], every: float) -> bool:
    """End a scan: delete queues and sources that it did not find, and notify people of new DLQs.

    Return False, and change nothing, if the scan's lease is lost. After the first scan of a scope, nobody is notified:
    the person who started the scan sees the list.

    Args:
        scan: the scan that ends.
        read_kinds: the kinds of sources that the scan could read.
        every: seconds until the next scan, if the scans are repeated.
    """
    return rows.in_transaction(partial(_complete, scan, read_kinds, every))


def _complete(scan: OpenScan, read_kinds: Collection[SourceKind], every: float) -> bool:
    if not discovery_scopes.end_scan(scan, every=every):
        return False
    rows.execute(_DROP_SOURCES, _scan_values(scan) | {"kinds": [kind.value for kind in read_kinds]})
    if SourceKind.QUEUE in read_kinds:
        rows.execute(_DROP_QUEUES, _scan_values(scan))
    found = rows.fetch(_Reported, _REPORT, {"scope": scan.id})
    if not scan.is_first:
        announce_dlqs([NewDlq(dlq.arn, dlq.messages, dlq.sources) for dlq in found if dlq.is_new])
    return True


def _scan_values(scan: OpenScan) -> dict[str, object]:
    return {"scope": scan.id, "began": scan.began_at, "filtered": scan.scope.is_filtered}


def _queue_columns(queues: Collection[QueueReading]) -> dict[str, object]:
    return {
        "arns": [queue.arn for queue in queues], "urls": [queue.url for queue in queues],
        "retentions": [queue.retention for queue in queues], "visibles": [queue.visible for queue in queues],
        "flights": [queue.in_flight for queue in queues], "last_errors": [queue.last_error for queue in queues],
        "tags": [None if queue.tags is None else Jsonb(dict(queue.tags)) for queue in queues],
    }  # fmt: skip


def _source_columns(sources: Collection[FailureSource]) -> dict[str, object]:
    return {
        "dlqs": [source.dlq_arn for source in sources], "sources": [source.source_arn for source in sources],
        "throughs": [source.through for source in sources], "kinds": [source.kind.value for source in sources],
    }  # fmt: skip
