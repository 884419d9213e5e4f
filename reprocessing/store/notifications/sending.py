"""Lease a notification destination, read its pending notifications, and record whether they were sent.

A process that has lost its lease cannot change the time of the next notification.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, LiteralString

from reprocessing.domain.notifications.delivery import Failed, Sent
from reprocessing.domain.notifications.event import EventKind
from reprocessing.domain.notifications.limits import APART, GIVEN_UP_AFTER, next_text_at, retry_at
from reprocessing.domain.notifications.text import EXAMPLES, IncidentFacts, Stage, TextSection
from reprocessing.store import rows
from reprocessing.store.notifications.group_events import unfinished_messages

_OF_GROUPS: Final = frozenset({EventKind.FAILURE_GROUP_NEW.value, EventKind.FAILURE_GROUP_REOPENED.value})
#: Length of the lease on a destination (s). If its worker is killed, another worker takes over when the lease ends.
LEASE_SECONDS: Final = 60.0

#: True of a route r if a text may be sent to it now, and no other worker has the lease. Between two texts is at least a
#: minute, unless an urgent incident has just opened.
_FREE: Final[LiteralString] = """
(r.destination = ANY(%(names)b::text[]) AND r.next_at <= redrive_now()
 AND (r.leased_until IS NULL OR r.leased_until <= redrive_now())
 AND EXISTS (SELECT FROM redrive_notification n
              WHERE n.route_id = r.id AND n.sent_at IS NULL AND n.given_up_at IS NULL)
 AND (r.sent_at IS NULL OR r.sent_at <= redrive_now() - make_interval(secs => %(apart)b::float8)
      OR EXISTS (SELECT FROM redrive_notification n JOIN redrive_incident i ON i.id = n.incident_id
                  WHERE n.route_id = r.id AND n.sent_at IS NULL AND n.given_up_at IS NULL AND n.phase = 'opened'
                    AND i.ended_at IS NULL AND i.kind = ANY(%(urgent)b::text[]))))
"""
_LIMITS: Final[Mapping[str, object]] = {
    "apart": APART / timedelta(seconds=1),
    "urgent": [kind.value for kind in EventKind if kind.is_urgent],
}

_DUE: Final[LiteralString] = f"""
SELECT EXISTS (SELECT FROM redrive_incident WHERE due_at <= redrive_now())
    OR EXISTS (SELECT FROM redrive_notification_route r WHERE {_FREE})
"""  # noqa: S608  # the inserted text is a constant

_CLAIM: Final[LiteralString] = f"""
UPDATE redrive_notification_route c
   SET fence = c.fence + 1, leased_until = redrive_now() + make_interval(secs => %(lease)b::float8)
  FROM (SELECT r.id FROM redrive_notification_route r WHERE {_FREE}
         ORDER BY r.next_at LIMIT %(limit)b::int FOR UPDATE SKIP LOCKED) free
 WHERE c.id = free.id
RETURNING c.id AS route_id, c.destination, c.fence, c.failures
"""  # noqa: S608  # the inserted text is a constant

# An incident that ended before the text was sent appears once, as ended. The ids of all notifications of the text are
# returned. The highest id is not enough: transactions do not commit in the order of ids, so a lower id may appear
# later.
_OWED: Final[LiteralString] = """
WITH incidents AS (
    SELECT i.id, i.kind, i.subject, i.facts, i.times, i.opened_at, i.ended_at, array_agg(n.id) AS ids,
           CASE WHEN bool_or(n.phase = 'ended') THEN 'ended' WHEN bool_or(n.phase = 'opened') THEN 'opened'
                ELSE 'reminded' END AS stage
      FROM redrive_notification n JOIN redrive_incident i ON i.id = n.incident_id
     WHERE n.route_id = %(route)b AND n.sent_at IS NULL AND n.given_up_at IS NULL
     GROUP BY i.id
)
SELECT kind, stage, count(*)::int AS many,
       ARRAY(SELECT unnest(m.ids) FROM incidents m WHERE (m.kind, m.stage) = (t.kind, t.stage) ORDER BY 1) AS ids,
       (array_agg(jsonb_build_object('subject', subject, 'facts', facts, 'times', times,
                                     'opened_at', extract(epoch FROM opened_at)::float8,
                                     'ended_at', extract(epoch FROM ended_at)::float8)
                  ORDER BY id DESC))[1:%(examples)b::int] AS examples
  FROM incidents t GROUP BY kind, stage ORDER BY kind, stage
"""

_SENT: Final[LiteralString] = """
UPDATE redrive_notification SET sent_at = %(now)b::timestamptz
 WHERE route_id = %(route)b AND id = ANY(%(ids)b::bigint[]) AND sent_at IS NULL AND given_up_at IS NULL
"""
_TEXTS: Final[LiteralString] = """
SELECT DISTINCT sent_at FROM redrive_notification
 WHERE route_id = %(route)b AND sent_at > %(now)b::timestamptz - interval '1 hour'
"""
_FREED: Final[LiteralString] = """
UPDATE redrive_notification_route
   SET leased_until = NULL, next_at = %(next)b::timestamptz, failures = %(failures)b::int,
       last_error = %(last_error)b::text, sent_at = coalesce(%(sent)b::timestamptz, sent_at)
 WHERE id = %(route)b AND fence = %(fence)b
"""
_GIVE_UP: Final[LiteralString] = """
UPDATE redrive_notification SET given_up_at = redrive_now()
 WHERE sent_at IS NULL AND given_up_at IS NULL
   AND filed_at <= redrive_now() - make_interval(secs => %(after)b::float8)
"""


_LOST: Final[LiteralString] = """
SELECT count(*) FROM redrive_notification WHERE given_up_at > redrive_now() - interval '1 day'
"""


@dataclass(frozen=True, slots=True)
class LeasedDestination:
    """A notification destination that this process has leased for 60 seconds (`LEASE_SECONDS`)."""

    route_id: int
    destination: str
    fence: int
    failures: int


@dataclass(frozen=True, slots=True)
class PendingText:
    """One text to send, with all pending notifications of a route, and the notifications' ids in ascending order."""

    sections: tuple[TextSection, ...]
    ids: tuple[int, ...]

    @property
    def key(self) -> str:
        """Return a short idempotency key: the same notifications always have the same key."""
        return hashlib.sha256(repr(self.ids).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class _Group:
    kind: str
    stage: str
    many: int
    ids: list[int]
    examples: list[dict[str, Any]]


def is_due(destinations: Collection[str]) -> bool:
    """Return whether notifications must be written now, or a text may be sent to one of these destinations now."""
    return rows.value(bool, _DUE, {"names": sorted(destinations), **_LIMITS})


def lease_destinations(destinations: Collection[str], *, limit: int) -> list[LeasedDestination]:
    """Lease and return up to `limit` of these destinations that have pending notifications and may get a text now."""
    return rows.fetch(
        LeasedDestination, _CLAIM, {"names": sorted(destinations), "limit": limit, "lease": LEASE_SECONDS, **_LIMITS}
    )


def pending_text(route_id: int) -> PendingText | None:
    """Return a text with all pending notifications of a route; None: there are none.

    Notifications are grouped by the kind of event, and by whether the incident began, goes on or ended (stage).
    """
    found = rows.fetch(_Group, _OWED, {"route": route_id, "examples": EXAMPLES})
    if not found:
        return None
    _count_messages(found)
    sections = tuple(
        TextSection(EventKind(group.kind), Stage(group.stage), group.many, tuple(map(_incident_facts, group.examples)))
        for group in found
    )
    return PendingText(sections, tuple(sorted(number for group in found for number in group.ids)))


def record_result(claimed: LeasedDestination, ids: Collection[int], came: Sent | Failed, now: datetime) -> None:
    """Record whether the text with these notifications was sent (`came`), and when the next text or a retry is due."""

    def sent() -> None:
        rows.execute(_SENT, {"route": claimed.route_id, "ids": list(ids), "now": now})
        texts = rows.column(datetime, _TEXTS, {"route": claimed.route_id, "now": now})
        _release(claimed, next_at=next_text_at(texts, now), sent=now)

    if isinstance(came, Sent):
        rows.in_transaction(sent)
    else:
        failures = claimed.failures + 1
        _release(claimed, next_at=retry_at(failures, now), failures=failures, last_error=came.why)


def release_destination(claimed: LeasedDestination, now: datetime) -> None:
    """End the lease of a destination to which nothing was sent; the next text may be sent at once."""
    _release(claimed, next_at=now)


def give_up_old() -> int:
    """Give up notifications that could not be sent within a day (`GIVEN_UP_AFTER`); return how many."""
    return rows.execute(_GIVE_UP, {"after": GIVEN_UP_AFTER / timedelta(seconds=1)})


def given_up_lately() -> int:
    """Return how many notifications were given up (see `give_up_old`) in the last 24 hours."""
    return rows.value(int, _LOST, {})


def _release(
    claimed: LeasedDestination,
    *,
    next_at: datetime,
    failures: int = 0,
    last_error: str = "",
    sent: datetime | None = None,
) -> None:
    values: Mapping[str, object] = {
        "route": claimed.route_id, "fence": claimed.fence, "next": next_at, "failures": failures,
        "last_error": last_error, "sent": sent,
    }  # fmt: skip
    rows.execute(_FREED, values)


def _count_messages(found: Collection[_Group]) -> None:
    """Add to notifications about failure groups how many unfinished or parked messages each group has now."""
    examples = [row["facts"] for group in found if group.kind in _OF_GROUPS for row in group.examples]
    messages = unfinished_messages({facts["group_id"] for facts in examples})
    for facts in examples:
        facts["messages"] = messages[facts["group_id"]]


def _incident_facts(row: Mapping[str, Any]) -> IncidentFacts:
    opened, ended = (row[name] and datetime.fromtimestamp(row[name], UTC) for name in ("opened_at", "ended_at"))
    return IncidentFacts(row["subject"], row["facts"], row["times"], opened, ended)
