"""Read, from stored counts, how many messages each DLQ has by state, and its captures and deliveries by hour."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, LiteralString

from reprocessing.store import rows
from reprocessing.store.maintenance.counters import COUNTS
from reprocessing.store.rights.visible_dlqs import EVERY_DLQ, VisibleDlqs


@dataclass(frozen=True, slots=True)
class MessageCounts:
    """How many unfinished and parked letters a DLQ has.

    Attributes:
        captured: letters that are stored, but that no run sends yet.
        open: letters that a run sends: they are queued, sending, or awaiting their outcome.
        sent: letters among `open` that are sending or awaiting their outcome.
    """

    dlq_id: int
    captured: int
    open: int
    sent: int
    parked: int


@dataclass(frozen=True, slots=True)
class Trend:
    """How many letters of a DLQ were captured, delivered and failed in the last hours.

    Attributes:
        slots: the hours with captures, deliveries or failures, as numbers; 0 is the oldest hour.
        captured_by_hour: letters captured in each hour of `slots`.
        delivered_by_hour: letters delivered in each hour of `slots`.
        captured, delivered, failed: the sums over all hours.
    """

    dlq_id: int
    slots: list[int]
    captured_by_hour: list[int]
    delivered_by_hour: list[int]
    captured: int
    delivered: int
    failed: int


_COUNTS: Final[LiteralString] = f"""
SELECT dlq_id, coalesce(sum(n) FILTER (WHERE state = 'captured'), 0)::bigint AS captured,
       coalesce(sum(n) FILTER (WHERE state IN ('waiting', 'sending', 'awaiting')), 0)::bigint AS open,
       coalesce(sum(n) FILTER (WHERE state IN ('sending', 'awaiting')), 0)::bigint AS sent,
       coalesce(sum(n) FILTER (WHERE state = 'parked'), 0)::bigint AS parked
  FROM {COUNTS} t WHERE %(dlqs)b::bigint[] IS NULL OR dlq_id = ANY(%(dlqs)b::bigint[])
 GROUP BY dlq_id
"""  # noqa: S608  # the inserted text is a constant

# Reads the last hours of each DLQ by the index of the stored counts; history is kept for months. Without ORDER BY and
# LIMIT, the planner would read all of the history, because it does not know how few hours are asked for.
_TRENDS: Final[LiteralString] = """
WITH span AS MATERIALIZED (
    SELECT date_trunc('hour', redrive_now(), 'UTC') - make_interval(hours => %(hours)b::int - 1) AS start
), found AS (
    SELECT d.id AS dlq_id, c.hour, c.what, c.n FROM redrive_dlq d CROSS JOIN span
     CROSS JOIN LATERAL (SELECT hour, what, n FROM redrive_hourly_count
                          WHERE dlq_id = d.id AND hour >= span.start AND what IN ('captured', 'delivered', 'failed')
                          ORDER BY hour DESC LIMIT %(hours)b::int * 3) c
     WHERE %(dlqs)b::bigint[] IS NULL OR d.id = ANY(%(dlqs)b::bigint[])
     UNION ALL
    SELECT dlq_id, hour, what, n FROM redrive_hourly_count_delta CROSS JOIN span
     WHERE hour >= span.start AND what IN ('captured', 'delivered', 'failed')
       AND (%(dlqs)b::bigint[] IS NULL OR dlq_id = ANY(%(dlqs)b::bigint[]))
), hours AS (
    SELECT dlq_id, (extract(epoch FROM hour - start) / 3600)::int AS slot,
           coalesce(sum(n) FILTER (WHERE what = 'captured'), 0)::bigint AS captured,
           coalesce(sum(n) FILTER (WHERE what = 'delivered'), 0)::bigint AS delivered,
           coalesce(sum(n) FILTER (WHERE what = 'failed'), 0)::bigint AS failed
      FROM found CROSS JOIN span GROUP BY 1, 2
)
SELECT dlq_id, array_agg(slot ORDER BY slot) AS slots, array_agg(captured ORDER BY slot) AS captured_by_hour,
       array_agg(delivered ORDER BY slot) AS delivered_by_hour, sum(captured)::bigint AS captured,
       sum(delivered)::bigint AS delivered, sum(failed)::bigint AS failed
  FROM hours GROUP BY dlq_id
"""


def message_counts(*, seen: VisibleDlqs = EVERY_DLQ) -> dict[int, MessageCounts]:
    """Return how many unfinished and parked letters each DLQ has, by the DLQ's id; DLQs without letters are left out.

    `seen`: the DLQs that the person who asks may see.
    """
    found = rows.fetch(MessageCounts, _COUNTS, {"dlqs": seen.array})
    return {counts.dlq_id: counts for counts in found}


def trends(hours: int, *, seen: VisibleDlqs = EVERY_DLQ) -> dict[int, Trend]:
    """Return the captures, deliveries and failures of the last `hours` hours, by the DLQ's id.

    The current hour is the last of these hours. DLQs without captures, deliveries and failures are left out. `seen`:
    the DLQs that the person who asks may see.
    """
    return {trend.dlq_id: trend for trend in rows.fetch(Trend, _TRENDS, {"hours": hours, "dlqs": seen.array})}
