"""Read the stored counts of letters by state, and add recent changes (deltas) to these counts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final, LiteralString

from django.db import transaction

from reprocessing.domain.lifecycle import LetterState
from reprocessing.store import rows
from reprocessing.store.rights.visible_dlqs import EVERY_DLQ, VisibleDlqs

#: Max kinds of events of an hour: a state that was reached, or a failure.
_EVENTS: Final = len(LetterState) + 1


@dataclass(frozen=True, slots=True)
class CountByState:
    """How many letters of a DLQ have the same state and parking reason. `presumed`: they are presumed delivered."""

    dlq_id: int
    state: str
    reason: str
    presumed: bool
    n: int


@dataclass(frozen=True, slots=True)
class CountInGroup:
    """How many letters of a failure group are in one state."""

    group_id: int
    state: str
    n: int


@dataclass(frozen=True, slots=True)
class CountInHour:
    """How many letters had the event `what` (such as captured) in the hour that began at `hour`."""

    hour: datetime
    what: str
    n: int


#: A count is the sum of the two tables: counts and deltas. One statement sees each change in only one of the tables.
COUNTS: Final[LiteralString] = """(
    SELECT dlq_id, group_id, state, reason, presumed, n FROM redrive_letter_count
    UNION ALL SELECT dlq_id, group_id, state, reason, presumed, n FROM redrive_letter_count_delta)"""

_KINDS = f"""
SELECT dlq_id, state, reason, presumed, sum(n)::bigint AS n FROM {COUNTS} t
 WHERE %(dlq)b::bigint IS NULL OR dlq_id = %(dlq)b::bigint
 GROUP BY 1, 2, 3, 4 HAVING sum(n) <> 0 ORDER BY 1, 2, 3, 4
"""  # noqa: S608  # the inserted text is a constant

_IN_GROUPS = f"""
SELECT g.id AS group_id, t.state, sum(t.n)::bigint AS n
  FROM redrive_failure_group g JOIN redrive_failure_group m ON m.id = g.id OR m.merged_into_id = g.id
  JOIN {COUNTS} t ON t.group_id = m.id
 WHERE g.id = ANY(%(groups)b::bigint[]) GROUP BY 1, 2 HAVING sum(t.n) <> 0 ORDER BY 1, 2
"""  # noqa: S608  # the inserted text is a constant

# Reads the last hours of each DLQ by the index of the stored counts; history is kept for months. Without ORDER BY and
# LIMIT, the planner would read all of the history, because it does not know how few hours are asked for.
_HOURS = """
WITH span AS MATERIALIZED (SELECT redrive_now() - make_interval(hours => %(hours)b::int) AS start)
SELECT hour, what, sum(n)::bigint AS n FROM (
    SELECT c.hour, c.what, c.n FROM redrive_dlq d CROSS JOIN span
     CROSS JOIN LATERAL (SELECT hour, what, n FROM redrive_hourly_count
                          WHERE dlq_id = d.id AND hour > span.start
                          ORDER BY hour DESC LIMIT (%(hours)b::int + 1) * %(kinds)b::int) c
     WHERE (%(dlq)b::bigint IS NULL OR d.id = %(dlq)b::bigint)
       AND (%(dlqs)b::bigint[] IS NULL OR d.id = ANY(%(dlqs)b::bigint[]))
     UNION ALL
    SELECT hour, what, n FROM redrive_hourly_count_delta CROSS JOIN span
     WHERE hour > span.start
       AND (%(dlq)b::bigint IS NULL OR dlq_id = %(dlq)b::bigint)
       AND (%(dlqs)b::bigint[] IS NULL OR dlq_id = ANY(%(dlqs)b::bigint[]))) t
 GROUP BY 1, 2 ORDER BY 1, 2
"""

# Only one transaction at a time adds deltas to counts: two would wait for each other's rows.
_TURN = "SELECT pg_try_advisory_xact_lock(1381126738, 0) AS mine"

_FOLD: Final[tuple[LiteralString, ...]] = (
    """
WITH gone AS (DELETE FROM redrive_letter_count_delta RETURNING *)
INSERT INTO redrive_letter_count AS t (dlq_id, group_id, state, reason, presumed, n)
SELECT dlq_id, group_id, state, reason, presumed, sum(n) FROM gone GROUP BY 1, 2, 3, 4, 5 HAVING sum(n) <> 0
ON CONFLICT (dlq_id, group_id, state, reason, presumed) DO UPDATE SET n = t.n + excluded.n
""",
    """
WITH gone AS (DELETE FROM redrive_hourly_count_delta RETURNING *), summed AS (
    INSERT INTO redrive_metric AS m (name, place, part, value)
    SELECT 'redrive_came_to', dlq_id, what, sum(n) FROM gone GROUP BY 2, 3 ORDER BY 2, 3
    ON CONFLICT (name, place, part) DO UPDATE SET value = m.value + excluded.value
)
INSERT INTO redrive_hourly_count AS f (dlq_id, hour, what, n)
SELECT dlq_id, hour, what, sum(n) FROM gone GROUP BY 1, 2, 3
ON CONFLICT (dlq_id, hour, what) DO UPDATE SET n = f.n + excluded.n
""",
    "DELETE FROM redrive_letter_count WHERE n = 0",
)

# Reads the oldest hours by index: without ORDER BY and LIMIT, the planner would read all hours.
_FORGET_GROUPS = """
DELETE FROM redrive_group_hour WHERE id IN (
    SELECT id FROM redrive_group_hour WHERE hour < (SELECT redrive_now() - interval '15 days')
     ORDER BY hour LIMIT %(limit)b)
"""
# Reads the oldest hours of each DLQ by index, also of DLQs that were removed. With a BETWEEN, the planner expects few
# rows; otherwise it may read all hours.
_FORGET = """
WITH RECURSIVE counted AS (
    (SELECT dlq_id FROM redrive_hourly_count ORDER BY dlq_id LIMIT 1)
    UNION ALL
    SELECT (SELECT c.dlq_id FROM redrive_hourly_count c WHERE c.dlq_id > counted.dlq_id ORDER BY c.dlq_id LIMIT 1)
      FROM counted WHERE dlq_id IS NOT NULL
)
DELETE FROM redrive_hourly_count WHERE id IN (
    SELECT old.id FROM counted CROSS JOIN LATERAL (
           SELECT id FROM redrive_hourly_count c
            WHERE c.dlq_id = counted.dlq_id
              AND c.hour BETWEEN '-infinity' AND (SELECT redrive_now() - make_interval(secs => %(history)b::float8))
            ORDER BY c.hour LIMIT 1000) old)
"""


def counts_by_state(dlq: int | None = None) -> list[CountByState]:
    """Return how many letters this DLQ (None: each DLQ) has by state and parking reason; counts of 0 are left out."""
    return rows.fetch(CountByState, _KINDS, {"dlq": dlq})


def counts_in_groups(groups: list[int]) -> list[CountInGroup]:
    """Return how many letters each of these failure groups has by state; counts of 0 are left out.

    Letters of groups that were merged into one of these groups count for that group.
    """
    return rows.fetch(CountInGroup, _IN_GROUPS, {"groups": groups})


def counts_by_hour(most: int, dlq: int | None = None, *, seen: VisibleDlqs = EVERY_DLQ) -> list[CountInHour]:
    """Return how many letters had each event, in each of the last `most` hours.

    The events are captured, failed, and each finished state. `dlq`: only letters of this DLQ; None: of all DLQs in
    `seen`, which the person who asks may see.
    """
    asked = {"hours": most, "kinds": _EVENTS, "dlq": dlq, "dlqs": seen.array}
    return rows.fetch(CountInHour, _HOURS, asked)


def fold_deltas() -> None:
    """Add the recent changes (deltas) to the stored counts of letters by state and by hour.

    Do nothing if another process does this now. Changes that are committed meanwhile are added by the next call.
    """
    with transaction.atomic():
        if rows.value(bool, _TURN, {}):
            for statement in _FOLD:
                rows.execute(statement, {})


def delete_old_hours(*, history: float) -> int:
    """Delete up to 1,000 counts of each DLQ, of hours that ended at least `history` seconds ago; return how many."""
    return rows.execute(_FORGET, {"history": history})


def delete_old_group_hours(*, limit: int) -> int:
    """Delete up to `limit` hourly counts of failure groups older than 15 days; return how many. Pages show 14 days."""
    return rows.execute(_FORGET_GROUPS, {"limit": limit})
