"""Show the results of discovery as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Final

from reprocessing.domain.dlqs.expiry_risk import Risk
from reprocessing.domain.notifications.text import duration
from reprocessing.management.console import format_time
from reprocessing.models.discovery import DiscoveryScope
from reprocessing.pipeline.dlqs.adopt import Adoption
from reprocessing.store.dlqs.discovered_queues import DiscoveredDlq

HEADER: Final = ("queue", "account", "region", "messages", "oldest", "retention", "risk", "sources", "status")
_SHOWN_SOURCES: Final = 3  #: max sources that a row of the table names


def cells(dlq: DiscoveredDlq, risk: Risk) -> list[str]:
    """Return the cells of a DLQ's row in the table whose header is `HEADER`."""
    messages = "unknown" if dlq.visible is None else f"{dlq.visible:,} + {dlq.in_flight or 0:,} in flight"
    oldest = "unknown" if dlq.oldest_age is None else duration(dlq.oldest_age)
    retention = "unknown" if dlq.retention is None else duration(dlq.retention)
    status = f"watched: {dlq.watched_as}" if dlq.watched_as else dlq.status
    return [
        dlq.name, dlq.account, dlq.region, messages, oldest if dlq.messages else "-", retention, risk.words,
        sources_text(dlq), status,
    ]  # fmt: skip


def sources_text(dlq: DiscoveredDlq) -> str:
    """Return the first three sources of a DLQ and the number of the others, such as "a, b, c and 2 more"."""
    names = [source.words for source in dlq.sources[:_SHOWN_SOURCES]]
    left = len(dlq.sources) - len(names)
    return ", ".join(names) + (f" and {left} more" if left else "")


def scope_lines(scopes: Sequence[DiscoveryScope]) -> Iterator[str]:
    """Yield lines about each scanned account and region: the time of its last full scan, and what could not be read."""
    for row in scopes:
        repeats = ", repeated" if row.daily else ""
        in_progress = f"; a scan is in progress since {format_time(row.began_at)}" if row.stage else ""
        yield f"{row.scope.words}: scanned {format_time(row.scanned_at)}{repeats}{in_progress}"
        for _, sentence in row.unread:
            yield f"  not read: {sentence}"


def as_json(dlq: DiscoveredDlq, risk: Risk) -> dict[str, Any]:
    """Return a discovered DLQ as JSON values; durations are in seconds."""
    return {
        "queue": dlq.name, "arn": dlq.arn, "url": dlq.url, "account": dlq.account, "region": dlq.region,
        "role": dlq.role_arn, "visible": dlq.visible, "in_flight": dlq.in_flight, "oldest_age": dlq.oldest_age,
        "retention": dlq.retention, "risk": risk.words, "status": dlq.status, "watched_as": dlq.watched_as,
        "last_error": dlq.last_error, "read_at": dlq.read_at,
        "sources": [
            {"arn": source.source_arn, "kind": source.kind.value, "rule": source.through} for source in dlq.sources
        ],
    }  # fmt: skip


def scope_json(row: DiscoveryScope) -> dict[str, Any]:
    """Return a scanned account and region, and its last scan, as JSON values."""
    scanned_at: datetime | None = row.scanned_at
    return {
        "role": row.role_arn, "region": row.region, "prefix": row.prefix, "tags": row.tags, "daily": row.daily,
        "looked_at": scanned_at, "complete": not row.stage, "unread": [sentence for _, sentence in row.unread],
    }  # fmt: skip


def adoption_lines(adoption: Adoption, *, acted: bool) -> Iterator[str]:
    """Yield lines about a DLQ that discover_dlqs adds (or would add): its name, sources and problems.

    If the DLQ cannot be added, yield one line that says why.
    """
    if adoption.error:
        yield f"{adoption.queue.name} cannot be added. {adoption.error}"
        return
    verb = "added" if acted else "to be added"
    yield f"{adoption.queue.name}: {verb} as {adoption.name}, in mode observe; sources: {sources_text(adoption.queue)}"
    for finding in adoption.examination.findings if adoption.examination else ():
        yield f"  {finding.severity.upper():7} {finding.what} {finding.cure}".rstrip()
