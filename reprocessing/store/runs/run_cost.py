"""Estimate the cost of a run's SQS requests so far, from its attempts and copies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from reprocessing.domain.aws import pricing
from reprocessing.domain.aws.pricing import Cost, Prices
from reprocessing.store import rows

#: Highest number of attempts, and of letters, of a run whose cost a page shows.
MAX_COUNTED: Final = 20_000

# Refused and unanswered sends count, because AWS charges them. Deletes by a capture are costs of the capture, not of
# the run.
_ASKED = """
SELECT t.arn LIKE '%%.fifo' AS fifo, false AS deleted, count(*) AS n, coalesce(sum(l.size), 0)::bigint AS size
  FROM (SELECT letter_id, target_id FROM redrive_attempt
         WHERE run_id = %(run)b AND outcome IS DISTINCT FROM 'not_sent') a
  JOIN redrive_letter l ON l.id = a.letter_id JOIN redrive_target t ON t.id = a.target_id
 WHERE t.kind IN ('sqs', 'celery') GROUP BY 1
UNION ALL
SELECT d.fifo, true, count(*), 0
  FROM (SELECT id, dlq_id FROM redrive_letter
         WHERE run_id = %(run)b AND state IN ('delivered', 'duplicate', 'discarded', 'parked')) l
  JOIN redrive_dlq d ON d.id = l.dlq_id AND d.delete_when = 'terminal'
  JOIN redrive_dlq_copy c ON c.letter_id = l.id AND c.state = 'gone'
 GROUP BY 1
"""

# Counts attempts only if the run has few letters. Letters are read in the order of their index, as in `progress`.
_SIZE = """
SELECT CASE WHEN letters.n < %(most)b::bigint THEN greatest(letters.n, (SELECT count(*) FROM (
            SELECT FROM redrive_attempt WHERE run_id = %(run)b::bigint LIMIT %(most)b::bigint) few))
            ELSE letters.n END AS n
  FROM (SELECT count(*) AS n FROM (
            SELECT FROM redrive_letter l
             WHERE (l.run_id, l.state) >= (%(run)b::bigint, '') AND (l.run_id, l.state) < (%(run)b::bigint + 1, '')
               AND l.run_id IS NOT NULL
             ORDER BY l.run_id, l.state LIMIT %(most)b::bigint) few) letters
"""


@dataclass(frozen=True, slots=True)
class _Asked:
    fifo: bool
    deleted: bool
    n: int
    size: int


def has_more_than(run: int, most: int) -> bool:
    """Return whether a run has more than `most` attempts or letters."""
    return rows.value(int, _SIZE, {"run": run, "most": most + 1}) > most


def cost_of_run(run: int, prices: Prices, *, most: int | None = None) -> Cost | None:
    """Return the lowest and the highest possible cost of the SQS requests with which a run sent and deleted messages.

    None: the run has more than `most` attempts or letters, which would take long to count. The costs of captures, of
    status requests to targets, and of other services are not included.
    """
    if most is not None and has_more_than(run, most):
        return None
    return sum((_cost_of(asked, prices) for asked in rows.fetch(_Asked, _ASKED, {"run": run})), Cost())


def _cost_of(asked: _Asked, prices: Prices) -> Cost:
    each = prices.of(fifo=asked.fifo)
    return (
        pricing.cost_of_deletes(asked.n, each=each)
        if asked.deleted
        else pricing.cost_of_sends(asked.n, asked.size, longest=0, each=each)
    )
