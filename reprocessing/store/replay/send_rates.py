"""Measure how fast the letters of DLQs, or of one run, are sent now."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, LiteralString

from reprocessing.store import rows

#: Seconds over which the sends of DLQs are counted.
WINDOW: Final = 10.0
#: Seconds over which the sends of one run are counted.
RUN_WINDOW: Final = 60.0
#: Newest attempts of a target that are read: 20,000 divided by the number of DLQs, but at least 60, and at most 1,000.
_READ, _FEWEST, _MOST = 20_000, 60, 1_000

# Reads the newest `most` attempts of each target by index; attempts of other DLQs do not count. If all these attempts
# are inside the window, the rate is measured since the oldest of these attempts. The DLQ of an attempt is found by its
# run, not by its letter, so that thousands of letters need not be read.
_RATES: Final[LiteralString] = """
WITH clock AS MATERIALIZED (SELECT redrive_now() AS now
), pair AS MATERIALIZED (
    SELECT DISTINCT o.dlq_id, b.id FROM redrive_source o JOIN redrive_breaker b ON b.target_id = o.target_id
     WHERE o.dlq_id = ANY(%(dlqs)b::bigint[])
), sent AS MATERIALIZED (
    SELECT b.id, a.run_id, count(*) AS n, min(a.opened_at) AS first
      FROM (SELECT DISTINCT id FROM pair) b CROSS JOIN clock
     CROSS JOIN LATERAL (
           SELECT run_id, opened_at FROM redrive_attempt WHERE breaker_id = b.id
            ORDER BY id DESC LIMIT %(most)b::bigint) a
     WHERE a.opened_at > clock.now - make_interval(secs => %(window)b::float8)
     GROUP BY b.id, a.run_id
), span AS (
    SELECT id, CASE WHEN sum(n) < %(most)b::bigint THEN %(window)b::float8
                    ELSE extract(epoch FROM clock.now - min(first)) END AS seconds
      FROM sent CROSS JOIN clock GROUP BY id, clock.now
)
SELECT pair.dlq_id, sum(sent.n / greatest(span.seconds, 1))::float8 AS rate
  FROM sent JOIN span ON span.id = sent.id
  JOIN redrive_run r ON r.id = sent.run_id
  JOIN pair ON pair.id = sent.id AND pair.dlq_id = r.dlq_id
 GROUP BY pair.dlq_id
"""


# Measures the rate as `_RATES` does, for the attempts of one run at these targets.
_OF_RUN: Final[LiteralString] = """
WITH clock AS MATERIALIZED (SELECT redrive_now() AS now)
SELECT coalesce(sum(sent.n / greatest(sent.seconds, 1)), 0)::float8 AS rate
  FROM redrive_breaker b CROSS JOIN clock
 CROSS JOIN LATERAL (
       SELECT count(*) FILTER (WHERE a.run_id = %(run)b::bigint) AS n,
              CASE WHEN count(*) < %(most)b::bigint THEN %(window)b::float8
                   ELSE extract(epoch FROM clock.now - min(a.opened_at)) END AS seconds
         FROM (SELECT run_id, opened_at FROM redrive_attempt WHERE breaker_id = b.id
                ORDER BY id DESC LIMIT %(most)b::bigint) a
        WHERE a.opened_at > clock.now - make_interval(secs => %(window)b::float8)) sent
 WHERE b.target_id = ANY(%(targets)b::bigint[])
"""


@dataclass(frozen=True, slots=True)
class _Rate:
    dlq_id: int
    rate: float


def send_rates(dlqs: Collection[int]) -> dict[int, float]:
    """Return, by DLQ id, about how many of the DLQ's letters were sent per second in the last 10 seconds."""
    most = min(max(_READ // max(len(dlqs), 1), _FEWEST), _MOST)
    found = rows.fetch(_Rate, _RATES, {"dlqs": sorted(dlqs), "most": most, "window": WINDOW})
    return {row.dlq_id: row.rate for row in found}


def rate_of_run(run: int, targets: Collection[int], *, since: float) -> float:
    """Return about how many letters/s a run sent to these targets in the last minute.

    `since`: seconds since the run was started. If they are less than a minute, the average is over these seconds.
    """
    values = {"run": run, "targets": sorted(targets), "most": _MOST, "window": min(max(since, 1.0), RUN_WINDOW)}
    return rows.value(float, _OF_RUN, values)
