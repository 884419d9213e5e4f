"""Find out why the newest attempts of runs fail: the most common outcome, or answer of the target."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final, LiteralString

from reprocessing.domain.outcomes.failed_answers import in_words
from reprocessing.store import rows
from reprocessing.store.safety.breaker_window import NEWEST_SENDS

#: How many of a breaker's newest attempts are read.
DEPTH: Final = 100

# Of a target's refusal, only the code is read. An attempt that was not sent because of the rate limit, or because its
# time ran out, did not fail.
_FAILED: Final[LiteralString] = f"""
WITH asked AS MATERIALIZED (
    SELECT b.id FROM redrive_breaker b
     WHERE b.target_id IN (
           SELECT o.target_id FROM redrive_source o WHERE %(dlq)b::bigint IS NULL OR o.dlq_id = %(dlq)b::bigint
            UNION ALL
           SELECT u.target_id FROM redrive_rule u WHERE u.target_id IS NOT NULL)
), failed AS (
    SELECT a.id, a.run_id, CASE WHEN a.returned_at IS NOT NULL THEN 'returned' ELSE a.outcome END AS outcome,
           CASE WHEN a.outcome = 'refused' THEN split_part(coalesce(a.detail, ''), ': ', 1)
                ELSE left(coalesce(a.detail, ''), 100) END AS said
      FROM asked CROSS JOIN LATERAL (
           SELECT * FROM ({NEWEST_SENDS.format(breaker="asked.id")}) newest WHERE newest.breaker_id = asked.id) a
     WHERE a.returned_at IS NOT NULL OR a.outcome IN ('refused', 'returned', 'failed', 'unknown', 'silent')
        OR (a.outcome = 'not_sent' AND (a.counts_as_failure OR a.detail LIKE 'it answered %%'))
)
SELECT r.dlq_id, f.outcome, f.said, count(*) AS n FROM failed f JOIN redrive_run r ON r.id = f.run_id
 WHERE (%(dlq)b::bigint IS NULL OR r.dlq_id = %(dlq)b::bigint)
   AND CASE WHEN %(run)b::bigint IS NULL THEN r.state NOT IN ('finished', 'aborted') ELSE r.id = %(run)b::bigint END
 GROUP BY r.dlq_id, f.outcome, f.said ORDER BY n DESC, max(f.id) DESC
"""  # noqa: S608  # the inserted text is a constant


@dataclass(frozen=True, slots=True)
class CommonFailure:
    """The most common reason why the newest failed attempts failed (`answer`), and how many attempts failed for it."""

    answer: str
    attempts: int


@dataclass(frozen=True, slots=True)
class _Failed:
    dlq_id: int
    outcome: str
    said: str
    n: int


def of_dlqs(dlq: int | None = None) -> dict[int, CommonFailure]:
    """Return, by DLQ id, the most common failure in the DLQ's unfinished runs. `dlq`: only this DLQ; None: all DLQs."""
    return _most_common(rows.fetch(_Failed, _FAILED, {"dlq": dlq, "run": None, "depth": DEPTH}))


def of_run(run: int, dlq: int) -> CommonFailure | None:
    """Return the most common failure of this run, a run of `dlq`, among the newest 100 attempts of each breaker.

    None: none of these attempts failed.
    """
    return _most_common(rows.fetch(_Failed, _FAILED, {"dlq": dlq, "run": run, "depth": DEPTH})).get(dlq)


def _most_common(found: list[_Failed]) -> dict[int, CommonFailure]:
    counts: dict[int, Counter[str]] = {}
    for failed in found:
        counts.setdefault(failed.dlq_id, Counter())[in_words(failed.outcome, failed.said)] += failed.n
    return {dlq: CommonFailure(*count.most_common(1)[0]) for dlq, count in counts.items()}
