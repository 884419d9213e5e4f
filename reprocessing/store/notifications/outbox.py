"""Open and end incidents, in the transaction of the change that people are notified of. Nothing is sent here.

An incident has a kind, such as run_stopped, and a subject that says what it is about, such as "run:7". Call these
functions last in a transaction: an incident's row stays locked until the commit.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from typing import Final, LiteralString

from psycopg.types.json import Jsonb

from reprocessing.domain.notifications.event import Event, EventKind
from reprocessing.domain.notifications.limits import REMINDED_EVERY
from reprocessing.store import rows

#: Seconds between an incident's beginning and its notifications. For an incident that ends earlier, nothing is sent.
SETTLING_SECONDS: Final = 10.0
#: If a condition is true again within this many seconds after its incident ended, the incident is opened again. So
#: people are notified of an end only after this time.
RESUME_WITHIN: Final = 60.0

# Some conditions are checked, and so announced, repeatedly: their row is written only if its facts changed. Of other
# events, each announcement is counted in `times`.
_ANNOUNCE: Final[LiteralString] = """
WITH announced AS (
INSERT INTO redrive_incident AS i (kind, subject, dlq_id, facts, times, opened_at, changed_at, due_at)
SELECT e.kind, e.subject, e.dlq_id, e.facts, e.times, k.now, k.now, k.now + make_interval(secs => %(settles)b::float8)
  FROM unnest(%(kinds)b::text[], %(subjects)b::text[], %(dlqs)b::bigint[], %(facts)b::jsonb[], %(times)b::int[])
       AS e(kind, subject, dlq_id, facts, times)
 CROSS JOIN (SELECT redrive_now() AS now OFFSET 0) k
 ORDER BY e.kind, e.subject
ON CONFLICT (kind, subject) WHERE ended_at IS NULL DO UPDATE
   SET facts = excluded.facts, times = i.times + excluded.times, changed_at = excluded.changed_at
 WHERE i.facts IS DISTINCT FROM excluded.facts OR i.kind = ANY(%(moments)b::text[])
RETURNING i.id, i.kind, xmax = 0 AS new)
SELECT id FROM announced WHERE new AND kind = ANY(%(flapping)b::text[])
"""

# If the same incident ended less than `RESUME_WITHIN` ago, it is opened again, and the new incident is deleted. Only
# this transaction sees the new incident; concurrent announcements wait. If people were notified of the old incident,
# its next reminder becomes due; if not, its notifications are due after its settling time.
_RESUME: Final[LiteralString] = """
WITH clock AS MATERIALIZED (SELECT redrive_now() AS now
), ended AS MATERIALIZED (
    SELECT e.id, n.id AS new_id
      FROM redrive_incident n CROSS JOIN clock k
      JOIN redrive_incident e ON e.kind = n.kind AND e.subject = n.subject
     WHERE n.id = ANY(%(new)b::bigint[]) AND e.ended_at > k.now - make_interval(secs => %(resumes)b::float8)
       AND (e.filed_at IS NULL OR e.due_at IS NOT NULL)
     ORDER BY e.id FOR UPDATE OF e
), latest AS (
    SELECT new_id, max(id) AS id FROM ended GROUP BY new_id
), replaced AS (
    DELETE FROM redrive_incident n USING latest l WHERE n.id = l.new_id
    RETURNING l.id, n.dlq_id, n.facts, n.times, n.changed_at
)
UPDATE redrive_incident i
   SET ended_at = NULL, dlq_id = r.dlq_id, facts = r.facts, times = i.times + r.times, changed_at = r.changed_at,
       due_at = CASE WHEN i.filed_at IS NULL THEN i.opened_at + make_interval(secs => %(settles)b::float8)
                     ELSE i.filed_at + make_interval(secs => %(reminded)b::float8)
                          * (1 + floor(extract(epoch FROM k.now - i.filed_at)::float8 / %(reminded)b::float8)) END
  FROM replaced r CROSS JOIN clock k WHERE i.id = r.id
"""

# Because a clock can be set back, the end is at least the beginning. People are notified of an incident only if it
# lasted longer than its settling time.
_CONCLUDE: Final[LiteralString] = """
UPDATE redrive_incident i
   SET ended_at = greatest(k.now, i.opened_at), changed_at = k.now,
       due_at = CASE WHEN i.filed_at IS NOT NULL THEN CASE WHEN i.kind = ANY(%(flapping)b::text[])
                          THEN k.now + make_interval(secs => %(resumes)b::float8) ELSE k.now END
                     WHEN i.due_at <= k.now THEN i.due_at END
  FROM (SELECT redrive_now() AS now OFFSET 0) k
 WHERE i.ended_at IS NULL
   AND (i.kind, i.subject) IN (SELECT * FROM unnest(%(kinds)b::text[], %(subjects)b::text[]))
"""

_MOMENTS: Final = [kind.value for kind in EventKind if kind.is_moment]
_FLAPPING: Final = [kind.value for kind in EventKind if kind.reopens_incident]


def announce(events: Collection[Event]) -> None:
    """Open an incident for each event, or update the open incident with the same kind and subject.

    Incidents of some kinds are opened again if they ended less than 60 seconds ago (`RESUME_WITHIN`). Call it in the
    transaction of the change.
    """
    if not events:
        return
    newest: dict[tuple[str, str], tuple[Event, int]] = {}
    for event in events:
        place = (event.kind.value, event.subject)
        newest[place] = (event, newest[place][1] + 1 if place in newest else 1)
    new = rows.column(
        int,
        _ANNOUNCE,
        {
            "kinds": [kind for kind, _ in newest],
            "subjects": [subject for _, subject in newest],
            "dlqs": [event.dlq_id for event, _ in newest.values()],
            "facts": [Jsonb(event.shown_facts) for event, _ in newest.values()],
            "times": [times for _, times in newest.values()],
            "settles": SETTLING_SECONDS,
            "moments": _MOMENTS,
            "flapping": _FLAPPING,
        },
    )
    if new:
        rows.execute(
            _RESUME,
            {
                "new": new,
                "resumes": RESUME_WITHIN,
                "settles": SETTLING_SECONDS,
                "reminded": REMINDED_EVERY / timedelta(seconds=1),
            },
        )


def conclude(ended: Collection[tuple[EventKind, str]]) -> None:
    """End the open incidents of these kinds and subjects; pairs (kind, subject) without an open incident are ignored.

    Call it in the transaction of the change.
    """
    if ended:
        rows.execute(
            _CONCLUDE,
            {
                "kinds": [kind.value for kind, _ in ended],
                "subjects": [subject for _, subject in ended],
                "flapping": _FLAPPING,
                "resumes": RESUME_WITHIN,
            },
        )
