"""Find why attempts of runs fail: of the newest attempts the failures, and what most of them were answered."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final, LiteralString

from reprocessing.domain.outcomes.failed_answers import in_words
from reprocessing.store import rows
from reprocessing.store.safety.breaker_window import NEWEST_SENDS

#: Of each breaker so many of its newest attempts are read, however many there are.
DEPTH: Final = 100

# Of a refusal the code alone is read. What waits for a rate, or had no time left, has not failed.
_FAILED: Final[LiteralString] = f"""
WITH asked AS MATERIALIZED (
    SELECT b.id FROM redrive_breaker b
     WHERE b.target_id IN (
           SELECT o.target_id FROM redrive_origin o WHERE %(dlq)b::bigint IS NULL OR o.dlq_id = %(dlq)b::bigint
            UNION ALL
           SELECT u.target_id FROM redrive_rule u WHERE u.target_id IS NOT NULL)
), failed AS (
    SELECT a.id, a.run_id, CASE WHEN a.returned_at IS NOT NULL THEN 'returned' ELSE a.outcome END AS outcome,
           CASE WHEN a.outcome = 'refused' THEN split_part(coalesce(a.detail, ''), ': ', 1)
                ELSE left(coalesce(a.detail, ''), 100) END AS said
      FROM asked CROSS JOIN LATERAL (
           SELECT * FROM ({NEWEST_SENDS.format(breaker="asked.id")}) newest WHERE newest.breaker_id = asked.id) a
     WHERE a.returned_at IS NOT NULL OR a.outcome IN ('refused', 'returned', 'failed', 'unknown', 'silent')
        OR (a.outcome = 'not_sent' AND (a.ill OR a.detail LIKE 'it answered %%'))
)
SELECT r.dlq_id, f.outcome, f.said, count(*) AS n FROM failed f JOIN redrive_run r ON r.id = f.run_id
 WHERE (%(dlq)b::bigint IS NULL OR r.dlq_id = %(dlq)b::bigint)
   AND CASE WHEN %(run)b::bigint IS NULL THEN r.state NOT IN ('finished', 'aborted') ELSE r.id = %(run)b::bigint END
 GROUP BY r.dlq_id, f.outcome, f.said ORDER BY n DESC, max(f.id) DESC
"""  # noqa: S608  # the inserted text is a constant


@dataclass(frozen=True, slots=True)
class Failing:
    """What most of the attempts that failed lately were answered, and how many of them were."""

    answer: str
    attempts: int


@dataclass(frozen=True, slots=True)
class _Failed:
    dlq_id: int
    outcome: str
    said: str
    n: int


def of_dlqs(dlq: int | None = None) -> dict[int, Failing]:
    """Why attempts of runs that have not ended fail, by DLQ: of this one, or of every one; nothing where none does."""
    return _most(rows.fetch(_Failed, _FAILED, {"dlq": dlq, "run": None, "depth": DEPTH}))


def of_run(run: int, dlq: int) -> Failing | None:
    """Why attempts of this run of this DLQ fail; None where none of the newest does."""
    return _most(rows.fetch(_Failed, _FAILED, {"dlq": dlq, "run": run, "depth": DEPTH})).get(dlq)


def _most(found: list[_Failed]) -> dict[int, Failing]:
    counts: dict[int, Counter[str]] = {}
    for one in found:
        counts.setdefault(one.dlq_id, Counter())[in_words(one.outcome, one.said)] += one.n
    return {dlq: Failing(*count.most_common(1)[0]) for dlq, count in counts.items()}
