"""Record every few minutes how many messages each DLQ has, and since when it has had messages that are not captured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, LiteralString

from reprocessing.domain.notifications.dlq_growth import DlqNote
from reprocessing.store import rows
from reprocessing.store.aws import metrics
from reprocessing.store.maintenance.counters import COUNTS

# Reads only the stored counts, so the cost does not depend on the number of messages.
_NOTE: Final[LiteralString] = f"""
WITH kept AS (
    SELECT dlq_id, sum(n) FILTER (WHERE state IN ('captured', 'waiting', 'sending', 'awaiting')) AS unfinished
      FROM {COUNTS} c GROUP BY dlq_id
), flown AS (
    SELECT dlq_id, sum(n) AS captured
      FROM (SELECT place AS dlq_id, value AS n FROM redrive_metric WHERE name = %(came_to)b AND part = 'captured'
            UNION ALL SELECT dlq_id, n FROM redrive_hourly_count_delta WHERE what = 'captured') f
     GROUP BY dlq_id
), forgotten AS (
    DELETE FROM redrive_dlq_sample WHERE taken_at < redrive_now() - make_interval(secs => 2 * %(within)b::float8)
)
INSERT INTO redrive_dlq_sample (dlq_id, taken_at, uncaptured, captured, unfinished)
SELECT u.dlq_id, redrive_now(), u.n, coalesce(f.captured, 0)::bigint, coalesce(k.unfinished, 0)::bigint
  FROM unnest(%(dlqs)b::bigint[], %(uncaptured)b::bigint[]) AS u(dlq_id, n)
  JOIN redrive_dlq d ON d.id = u.dlq_id
  LEFT JOIN kept k ON k.dlq_id = u.dlq_id LEFT JOIN flown f ON f.dlq_id = u.dlq_id
"""  # noqa: S608  # the inserted text is a constant

_NOTES: Final[LiteralString] = """
SELECT dlq_id, extract(epoch FROM redrive_now() - taken_at)::float8 AS seconds_ago, uncaptured, captured, unfinished
  FROM redrive_dlq_sample WHERE taken_at >= redrive_now() - make_interval(secs => 1.2 * %(within)b::float8)
 ORDER BY dlq_id, taken_at, id
"""

# A row is written when uncaptured messages appear, and when none are left.
_SINCE: Final[LiteralString] = """
WITH seen AS (
    SELECT d.id, CASE WHEN u.n > 0 THEN coalesce(d.uncaptured_since, redrive_now()) END AS since, d.uncaptured_since
      FROM unnest(%(dlqs)b::bigint[], %(uncaptured)b::bigint[]) AS u(dlq_id, n) JOIN redrive_dlq d ON d.id = u.dlq_id
), noted AS (
    UPDATE redrive_dlq d SET uncaptured_since = s.since
      FROM seen s WHERE d.id = s.id AND s.since IS DISTINCT FROM s.uncaptured_since
)
SELECT id AS dlq_id, extract(epoch FROM redrive_now() - since)::float8 AS seconds FROM seen WHERE since IS NOT NULL
"""


@dataclass(frozen=True, slots=True)
class _Note(DlqNote):
    dlq_id: int


@dataclass(frozen=True, slots=True)
class _Since:
    dlq_id: int
    seconds: float


def record_samples(uncaptured: Mapping[int, int], *, within: float) -> None:
    """Record how many uncaptured, captured and unfinished messages each DLQ has now (a sample).

    `uncaptured`: how many messages are in SQS and not captured, by the DLQ's id. Only these DLQs get a sample. Samples
    older than twice `within` seconds are deleted.
    """
    rows.execute(_NOTE, {**_columns(uncaptured), "within": within, "came_to": metrics.LETTER_EVENTS})


def recent_samples(*, within: float) -> dict[int, list[DlqNote]]:
    """Return the samples of the last 1.2 times `within` seconds, by the DLQ's id, the oldest sample first."""
    found: dict[int, list[DlqNote]] = {}
    for row in rows.fetch(_Note, _NOTES, {"within": within}):
        found.setdefault(row.dlq_id, []).append(row)
    return found


def uncaptured_seconds(uncaptured: Mapping[int, int]) -> dict[int, float]:
    """Return for how many seconds each DLQ has had messages that are not captured, by the DLQ's id.

    Also record when the first such message is seen, and when none is left. `uncaptured`: how many messages are in SQS
    and not captured, by the DLQ's id.
    """
    return {row.dlq_id: row.seconds for row in rows.fetch(_Since, _SINCE, _columns(uncaptured))}


def _columns(uncaptured: Mapping[int, int]) -> dict[str, list[int]]:
    dlqs = sorted(uncaptured)
    return {"dlqs": dlqs, "uncaptured": [uncaptured[dlq] for dlq in dlqs]}
