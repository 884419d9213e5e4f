"""Read the DLQs that discovery found in AWS, and record which of them a person wants to ignore."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Final, LiteralString

from django.db import transaction

from reprocessing.domain.dlqs.discovery import FailureSource, SourceKind
from reprocessing.domain.dlqs.expiry_risk import Risk, expiry_risk
from reprocessing.domain.message.arn import read, resource_name
from reprocessing.models.audit import AuditAct, AuditEntry
from reprocessing.models.discovery import DiscoveredQueue
from reprocessing.store import rows

_LIST: Final[LiteralString] = """
SELECT q.id, q.arn, q.url, c.role_arn, c.region, q.tags, q.retention, q.visible, q.in_flight, q.oldest_age,
       q.last_error, q.read_at, coalesce(d.name, '') AS watched_as, q.ignored_at, q.ignored_by, q.ignore_reason, s.found
  FROM redrive_discovered_queue q JOIN redrive_discovery_scope c ON c.id = q.scope_id
  JOIN (SELECT dlq_arn, array_agg(source_arn || '|' || through || '|' || kind ORDER BY kind, source_arn, through)
               AS found FROM redrive_discovered_source GROUP BY dlq_arn) s ON s.dlq_arn = q.arn
  LEFT JOIN redrive_dlq d ON d.arn = q.arn
 WHERE %(arn)b::text IS NULL OR q.arn = %(arn)b::text
 ORDER BY q.arn
"""


@dataclass(frozen=True, slots=True)
class DiscoveredDlq:
    """A DLQ that discovery found. A count or time is None if the queue could not be read.

    Attributes:
        role_arn: the role with which the queue was read; empty: the service's own role.
        retention, oldest_age: seconds; `oldest_age` is the age at `read_at`.
        watched_as: the name under which the queue is registered as a DLQ; empty: it is not registered.
        last_error: why the queue could not be read, for people; empty: it was read.
        found: the resources whose failed messages go to the queue, in their stored form; use the property `sources`.
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
    last_error: str
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
        """The DLQ's status: `watched`, `ignored` or `new`."""
        return "watched" if self.watched_as else "ignored" if self.ignored_at else "new"

    @property
    def messages(self) -> int | None:
        """The number of visible messages and messages in flight; None: not known."""
        return None if self.visible is None else self.visible + (self.in_flight or 0)

    def risk(self, now: datetime) -> Risk:
        """Return when SQS drops the first message, if nobody has received messages since `read_at`."""
        age = None if self.oldest_age is None else self.oldest_age + (now - self.read_at).total_seconds()
        return expiry_risk(
            messages=self.messages, retention=self.retention, oldest_age=age, fifo=self.name.endswith(".fifo")
        )

    @property
    def sources(self) -> list[FailureSource]:
        """The resources whose failed messages go to the queue."""
        parts = (text.split("|") for text in self.found)
        return [FailureSource(self.arn, source, SourceKind(kind), through) for source, through, kind in parts]


def list_dlqs() -> list[DiscoveredDlq]:
    """Return all DLQs that discovery found, sorted by ARN."""
    return rows.fetch(DiscoveredDlq, _LIST, {"arn": None})


def find_dlq(arn: str) -> DiscoveredDlq | None:
    """Return the DLQ with this ARN, if discovery found it; else None."""
    return rows.first(DiscoveredDlq, _LIST, {"arn": arn})


def set_ignored(arns: Collection[str], *, ignored: bool, by: str, reason: str) -> int:
    """Ignore these discovered queues, or stop ignoring them, with an audit log entry; return how many changed."""
    with transaction.atomic():
        locked = DiscoveredQueue.objects.select_for_update().filter(arn__in=arns, ignored_at__isnull=ignored)
        changed = sorted(locked.values_list("arn", flat=True))
        now = rows.value(datetime, "SELECT redrive_now() AS now", {})
        DiscoveredQueue.objects.filter(arn__in=changed).update(
            ignored_at=now if ignored else None, ignored_by=by if ignored else "",
            ignore_reason=reason if ignored else "",
        )  # fmt: skip
        if changed:
            after = {"discovered_queues": changed, "ignored": ignored}
            AuditEntry.objects.create(act=AuditAct.CHANGED, by=by, reason=reason, after=after)
    return len(changed)
