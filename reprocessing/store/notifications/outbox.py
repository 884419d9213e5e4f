"""Open and conclude incidents, in the transaction in which they happen. Nothing is sent here.

Each call is one statement, for any number of events. Call it last in a transaction: an incident's row stays locked
until the commit.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, LiteralString

from psycopg.types.json import Jsonb

from reprocessing.domain.notifications.event import Event, EventKind
from reprocessing.store import rows

#: Seconds between an incident's beginning and its notifications. Incidents within them are sent as one text. An
#: incident that ends earlier is not notified.
SETTLES: Final = 10.0

# A polled condition is announced again and again: its row is written only if its facts changed. Moments are counted.
_ANNOUNCE: Final[LiteralString] = """
INSERT INTO redrive_incident AS i (kind, subject, dlq_id, facts, times, opened_at, changed_at, due_at)
SELECT e.kind, e.subject, e.dlq_id, e.facts, e.times, k.now, k.now, k.now + make_interval(secs => %(settles)b::float8)
  FROM unnest(%(kinds)b::text[], %(subjects)b::text[], %(dlqs)b::bigint[], %(facts)b::jsonb[], %(times)b::int[])
       AS e(kind, subject, dlq_id, facts, times)
 CROSS JOIN (SELECT redrive_now() AS now OFFSET 0) k
 ORDER BY e.kind, e.subject
ON CONFLICT (kind, subject) WHERE ended_at IS NULL DO UPDATE
   SET facts = excluded.facts, times = i.times + excluded.times, changed_at = excluded.changed_at
 WHERE i.facts IS DISTINCT FROM excluded.facts OR i.kind = ANY(%(moments)b::text[])
"""

# A clock can be set back, by NTP or a failover: an end is never before its beginning.
_CONCLUDE: Final[LiteralString] = """
UPDATE redrive_incident i
   SET ended_at = greatest(k.now, i.opened_at), changed_at = k.now, due_at = CASE WHEN i.filed_at IS NOT NULL THEN k.now END
  FROM (SELECT redrive_now() AS now OFFSET 0) k
 WHERE i.ended_at IS NULL
   AND (i.kind, i.subject) IN (SELECT * FROM unnest(%(kinds)b::text[], %(subjects)b::text[]))
"""

_MOMENTS: Final = [kind.value for kind in EventKind if kind.is_moment]


def announce(events: Collection[Event]) -> None:
    """Open an incident for each event, or update the facts of the one that is open for its kind and subject.

    In the caller's transaction; a roll-back takes it back.
    """
    if not events:
        return
    newest: dict[tuple[str, str], tuple[Event, int]] = {}
    for event in events:
        place = (event.kind.value, event.subject)
        newest[place] = (event, newest[place][1] + 1 if place in newest else 1)
    rows.execute(
        _ANNOUNCE,
        {
            "kinds": [kind for kind, _ in newest],
            "subjects": [subject for _, subject in newest],
            "dlqs": [event.dlq_id for event, _ in newest.values()],
            "facts": [Jsonb(event.shown_facts) for event, _ in newest.values()],
            "times": [times for _, times in newest.values()],
            "settles": SETTLES,
            "moments": _MOMENTS,
        },
    )


def conclude(ended: Collection[tuple[EventKind, str]]) -> None:
    """End the incidents that are open for these kinds and subjects; pairs without an open incident are ignored.

    In the caller's transaction. Where nothing is open it reads an empty index.
    """
    if ended:
        rows.execute(
            _CONCLUDE, {"kinds": [kind.value for kind, _ in ended], "subjects": [subject for _, subject in ended]}
        )
