"""Store the metric counters, how much of each counter CloudWatch got, and when each periodic action was last done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, LiteralString

from reprocessing.store import rows

#: The stored name of the counter of events of letters; the label value is the event, such as "captured" or "delivered".
LETTER_EVENTS: Final = "redrive_came_to"


@dataclass(frozen=True, slots=True)
class MetricSum:
    """The value of the counter `name` for one label value.

    `part`: the label value. `place`: the id of the DLQ or target that the counter is about; 0: it is about neither.
    """

    name: str
    place: int
    part: str
    value: float


@dataclass(frozen=True, slots=True)
class QueueHeartbeat:
    """Seconds since a worker last took a task from one of the service's own Celery queues."""

    queue: str
    age: float


MetricKey = tuple[str, int, str]

# Sorted, so that two concurrent statements do not deadlock.
_ADD = """
INSERT INTO redrive_metric AS m (name, place, part, value)
SELECT * FROM unnest(%(names)b::text[], %(places)b::bigint[], %(parts)b::text[], %(values)b::float8[])
 ORDER BY 1, 2, 3
ON CONFLICT (name, place, part) DO UPDATE SET value = m.value + excluded.value
"""

# Recent events are in the delta table until `counters.fold_deltas` adds them to the sums. One statement sees each event
# in only one of the two tables.
_SUMS = """
SELECT name, place, part, sum(value) AS value FROM (
    SELECT name, place, part, value FROM redrive_metric
    UNION ALL SELECT 'redrive_came_to', dlq_id, what, n FROM redrive_hourly_count_delta) t
 GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
"""

# Returns by how much each counter grew, and records that as published before it is sent to CloudWatch. So a crash may
# leave a gap, but no double count.
_OWED: LiteralString = """
WITH due AS (
    SELECT id, value, told FROM redrive_metric
     WHERE value > told AND name = ANY(%(names)b::text[]) ORDER BY name, place, part FOR UPDATE
), told AS (
    UPDATE redrive_metric m SET told = d.value FROM due d WHERE m.id = d.id
    RETURNING m.name, m.place, m.part, d.value - d.told AS value
)
SELECT name, place, part, value FROM told ORDER BY 1, 2, 3
"""

_TAKE_BACK = """
UPDATE redrive_metric m SET told = m.told - u.value
  FROM unnest(%(names)b::text[], %(places)b::bigint[], %(parts)b::text[], %(values)b::float8[])
       AS u(name, place, part, value)
 WHERE (m.name, m.place, m.part) = (u.name, u.place, u.part)
"""

# The row's value is the time when the action was last done, in seconds since 1970.
_IS_DUE = """
INSERT INTO redrive_metric AS m (name, place, part, value)
VALUES (%(what)b::text, 0, 'turn', extract(epoch FROM redrive_now()))
ON CONFLICT (name, place, part) DO UPDATE SET value = excluded.value
 WHERE m.value <= excluded.value - %(every)b::float8
"""

_IS_OVER = "UPDATE redrive_metric SET value = 0 WHERE name = %(what)b::text AND place = 0 AND part = 'turn'"

# When CloudWatch was last called, in seconds since 1970.
_NOTE_ASKED = """
INSERT INTO redrive_metric AS m (name, place, part, value)
VALUES ('publish', 0, 'asked', extract(epoch FROM %(at)b::timestamptz))
ON CONFLICT (name, place, part) DO UPDATE SET value = excluded.value
"""

_ASKED_SINCE = """
SELECT EXISTS (
    SELECT FROM redrive_metric
     WHERE (name, place, part) = ('publish', 0, 'asked') AND value >= extract(epoch FROM %(at)b::timestamptz)
) AS so
"""

_BEATS = """
SELECT queue, extract(epoch FROM clock_timestamp() - consumed_at)::float8 AS age FROM redrive_heartbeat ORDER BY queue
"""


def add_to_sums(some: Mapping[MetricKey, float]) -> None:
    """Add each value to the stored counter of its key: (name, id of the DLQ or target, label value)."""
    if some:
        rows.execute(_ADD, _columns([MetricSum(*key, value) for key, value in some.items()]))


def current_sums() -> list[MetricSum]:
    """Return the values of all counters, with the changes that are not added to the stored values yet."""
    return rows.fetch(MetricSum, _SUMS, {})


def take_unpublished(names: list[str]) -> list[MetricSum]:
    """Return how much these counters have grown since the last call, and record this growth as sent to CloudWatch."""
    return rows.fetch(MetricSum, _OWED, {"names": names})


def return_unpublished(some: list[MetricSum]) -> None:
    """Undo `take_unpublished` for values that could not be sent; the next `take_unpublished` returns them again."""
    rows.execute(_TAKE_BACK, _columns(some))


def claim_if_due(what: str, *, every: float) -> bool:
    """Return whether the periodic action named `what` was last done at least `every` seconds ago.

    If so, record the action as done now.
    """
    return rows.execute(_IS_DUE, {"what": what, "every": every}) == 1


def make_due(what: str) -> None:
    """Make the periodic action named `what` due now: the next call of `claim_if_due` for it returns True."""
    rows.execute(_IS_OVER, {"what": what})


def record_put_attempt(at: datetime) -> None:
    """Record that the service tried to send metrics to CloudWatch at the time `at`, with or without success."""
    rows.execute(_NOTE_ASKED, {"at": at})


def put_attempted_since(at: datetime) -> bool:
    """Return whether the service tried to send metrics to CloudWatch since the time `at`, even without success."""
    return rows.value(bool, _ASKED_SINCE, {"at": at})


def heartbeats() -> list[QueueHeartbeat]:
    """Return how long ago a worker last took a task, for each of the service's Celery queues, sorted by queue name."""
    return rows.fetch(QueueHeartbeat, _BEATS, {})


def _columns(some: list[MetricSum]) -> dict[str, list[object]]:
    return {
        "names": [part.name for part in some], "places": [part.place for part in some],
        "parts": [part.part for part in some], "values": [float(part.value) for part in some],
    }  # fmt: skip
