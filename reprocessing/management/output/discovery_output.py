"""What discovery found, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Final

from reprocessing.domain.dlqs.discovery import FailureSource, SourceKind
from reprocessing.domain.dlqs.expiry_risk import Risk
from reprocessing.domain.message.arn import resource_name
from reprocessing.domain.notifications.text import duration
from reprocessing.management.console import format_time
from reprocessing.models.discovery import DiscoveryScope
from reprocessing.pipeline.dlqs.adopt import Adoption
from reprocessing.store.dlqs.discovered_queues import DiscoveredDlq

HEADER: Final = ("queue", "account", "region", "messages", "oldest", "retention", "risk", "sources", "status")
_SHOWN_SOURCES: Final = 3
_PREFIXES: Final = {
    SourceKind.QUEUE: "", SourceKind.FUNCTION: "function ", SourceKind.SUBSCRIPTION: "subscription ",
    SourceKind.RULE: "rule target ",
}  # fmt: skip


def cells(dlq: DiscoveredDlq, risk: Risk) -> list[str]:
    """Return the cells of a DLQ's row in the table."""
    messages = "unknown" if dlq.visible is None else f"{dlq.visible:,} + {dlq.in_flight or 0:,} in flight"
    oldest = "unknown" if dlq.oldest_age is None else duration(dlq.oldest_age)
    retention = "unknown" if dlq.retention is None else duration(dlq.retention)
    status = f"watched: {dlq.watched_as}" if dlq.watched_as else dlq.status
    return [
        dlq.name, dlq.account, dlq.region, messages, "-" if not messages_in(dlq) else oldest, retention, risk.words,
        sources_text(dlq), status,
    ]  # fmt: skip


def messages_in(dlq: DiscoveredDlq) -> int | None:
    """Return the number of visible messages and messages in flight; None: not known."""
    return None if dlq.visible is None else dlq.visible + (dlq.in_flight or 0)


def source_text(source: FailureSource) -> str:
    """Return a source for people, such as "function ship"."""
    name = f"{_PREFIXES[source.kind]}{resource_name(source.source_arn)}"
    return f"{name} of {resource_name(source.through)}" if source.through else name


def sources_text(dlq: DiscoveredDlq) -> str:
    """Return the first sources of a DLQ, and the number of the others."""
    names = [
        "itself" if source.source_arn == dlq.arn else source_text(source) for source in dlq.sources[:_SHOWN_SOURCES]
    ]
    left = len(dlq.sources) - len(names)
    return ", ".join(names) + (f" and {left} more" if left else "")


def scope_lines(scopes: Sequence[DiscoveryScope]) -> Iterator[str]:
    """Yield lines about each account and region: when it was looked at last, and what could not be read."""
    for row in scopes:
        repeats = ", repeated by beat" if row.daily else ""
        open_look = f"; a look is open since {format_time(row.began_at)}" if row.stage else ""
        yield f"{row.scope.words}: looked at {format_time(row.looked_at)}{repeats}{open_look}"
        for _, sentence in row.unread:
            yield f"  not read: {sentence}"


def as_json(dlq: DiscoveredDlq, risk: Risk) -> dict[str, Any]:
    """Return a DLQ as JSON values; durations in seconds."""
    return {
        "queue": dlq.name, "arn": dlq.arn, "url": dlq.url, "account": dlq.account, "region": dlq.region,
        "role": dlq.role_arn, "visible": dlq.visible, "in_flight": dlq.in_flight, "oldest_age": dlq.oldest_age,
        "retention": dlq.retention, "risk": risk.words, "status": dlq.status, "watched_as": dlq.watched_as,
        "trouble": dlq.trouble, "read_at": dlq.read_at,
        "sources": [
            {"arn": source.source_arn, "kind": source.kind.value, "rule": source.through} for source in dlq.sources
        ],
    }  # fmt: skip


def scope_json(row: DiscoveryScope) -> dict[str, Any]:
    """Return an account and region as JSON values."""
    looked_at: datetime | None = row.looked_at
    return {
        "role": row.role_arn, "region": row.region, "prefix": row.prefix, "tags": row.tags, "daily": row.daily,
        "looked_at": looked_at, "complete": not row.stage, "unread": [sentence for _, sentence in row.unread],
    }  # fmt: skip


def adoption_lines(adoption: Adoption, *, acted: bool) -> Iterator[str]:
    """Yield lines: what is added, and the problems that the examination found."""
    if adoption.trouble:
        yield f"{adoption.queue.name}: cannot be added. {adoption.trouble}"
        return
    verb = "added" if acted else "to be added"
    yield f"{adoption.queue.name}: {verb} as {adoption.name}, in mode observe; sources: {sources_text(adoption.queue)}"
    for finding in adoption.examination.findings if adoption.examination else ():
        yield f"  {finding.severity.upper():7} {finding.what} {finding.cure}".rstrip()
