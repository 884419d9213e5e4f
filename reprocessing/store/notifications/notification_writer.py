"""Write the notifications of each incident (beginning, reminders, end) for each route that wants such incidents."""

from __future__ import annotations

from typing import Final, LiteralString

from reprocessing.domain.notifications.event import EventKind
from reprocessing.domain.notifications.limits import REMINDED_EVERY
from reprocessing.store import rows
from reprocessing.store.notifications.outbox import RESUME_WITHIN

#: Highest number of incidents in one statement, and of statements in one call. The next call handles the rest.
_AT_ONCE: Final = 1_000
_STATEMENTS: Final = 20

#: True of a route r and an incident d if the route takes the incident's kind and DLQ. A route that names DLQs does not
#: get incidents without a DLQ, such as beat_silent.
_MATCHES: Final[LiteralString] = """
((cardinality(r.kinds) = 0 OR d.kind = ANY(r.kinds))
 AND (NOT EXISTS (SELECT FROM redrive_notification_route_dlqs m WHERE m.notificationroute_id = r.id)
      OR EXISTS (SELECT FROM redrive_notification_route_dlqs m
                  WHERE m.notificationroute_id = r.id AND m.deadletterqueue_id = d.dlq_id)))
"""

# The end of an incident goes to the routes that got, or will get, its beginning. An event without duration ends when
# its notifications are written. If an incident ended before its beginning was written, both are written in order.
_FILE: Final[LiteralString] = f"""
WITH clock AS MATERIALIZED (SELECT redrive_now() AS now
), due AS MATERIALIZED (
    SELECT i.id, i.kind, i.dlq_id, CASE WHEN i.filed_at IS NOT NULL THEN i.ended_at END AS ended_at, k.now
      FROM redrive_incident i, clock k
     WHERE i.due_at <= k.now ORDER BY i.due_at LIMIT {_AT_ONCE} FOR UPDATE OF i SKIP LOCKED
), filed AS (
    INSERT INTO redrive_notification (incident_id, route_id, phase, filed_at)
    SELECT d.id, r.id,
           CASE WHEN d.ended_at IS NOT NULL THEN 'ended' WHEN t.again THEN 'reminded' ELSE 'opened' END, d.now
      FROM due d CROSS JOIN redrive_notification_route r
     CROSS JOIN LATERAL (
           SELECT coalesce(bool_or(n.given_up_at IS NULL), false) AS told,
                  coalesce(bool_or(n.sent_at IS NULL AND n.given_up_at IS NULL), false) AS owed, count(*) > 0 AS again
             FROM redrive_notification n WHERE n.incident_id = d.id AND n.route_id = r.id) t
     WHERE CASE WHEN d.ended_at IS NOT NULL THEN t.told ELSE NOT t.owed AND {_MATCHES} END
    ON CONFLICT DO NOTHING
)
UPDATE redrive_incident i
   SET filed_at = coalesce(i.filed_at, d.now),
       ended_at = CASE WHEN i.kind = ANY(%(moments)b::text[]) THEN coalesce(i.ended_at, d.now) ELSE i.ended_at END,
       due_at = CASE WHEN i.kind = ANY(%(moments)b::text[]) OR d.ended_at IS NOT NULL THEN NULL
                     WHEN i.ended_at IS NOT NULL THEN i.ended_at + make_interval(secs => %(resumes)b::float8)
                     ELSE d.now + make_interval(secs => %(again)b::float8) END
  FROM due d WHERE i.id = d.id
"""  # noqa: S608  # the inserted texts are constants

_MOMENTS: Final = [kind.value for kind in EventKind if kind.is_moment]


def file_notifications() -> int:
    """Write the notifications of all incidents of which people must be notified now; return the number of incidents.

    A notification is written for each route that wants such incidents. Each statement is a separate transaction.
    Concurrent callers get different incidents.
    """
    parameters = {"moments": _MOMENTS, "again": REMINDED_EVERY.total_seconds(), "resumes": RESUME_WITHIN}
    filed = 0
    for _ in range(_STATEMENTS):
        found = rows.execute(_FILE, parameters)
        filed += found
        if found < _AT_ONCE:
            break
    return filed
