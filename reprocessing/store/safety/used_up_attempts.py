"""For messages that used up their attempts: read when the attempts failed, and whether the target worked since."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, LiteralString

from reprocessing.domain.safety.failure_cause import LastFailures
from reprocessing.store import rows
from reprocessing.store.safety.breaker_window import ATTEMPTS_READ, NEWEST_SENDS
from reprocessing.store.safety.outage_attempts import FURTHER_FAILURES_COUNT, WAS_SUCCESS

# Reads few messages, each by itself: `OFFSET 0` keeps the planner from joining whole tables. See `last_failures` for
# the messages that are left out.
_LAST_FAILURES: Final[LiteralString] = f"""
SELECT l.letter_id, extract(epoch FROM redrive_now() - used.failed_at)::float8 AS seconds_ago,
       coalesce(well.id > used.first, false) AS success_since_first,
       coalesce(well.id > used.last, false) AS success_since_last
  FROM unnest(%(letters)b::bigint[]) AS m(id)
 CROSS JOIN LATERAL (
        SELECT l.id AS letter_id, d.max_attempts, b.id AS breaker_id
          FROM redrive_letter l
          JOIN redrive_dlq d ON d.id = l.dlq_id
          JOIN redrive_run r ON r.id = l.run_id AND r.kind = 'automatic'
          JOIN redrive_breaker b ON b.target_id = l.target_id AND b.rate_class_id IS NOT DISTINCT FROM l.rate_class_id
         WHERE l.id = m.id AND NOT {FURTHER_FAILURES_COUNT} OFFSET 0) l
 CROSS JOIN LATERAL (
        SELECT min(a.id) AS first, max(a.id) AS last, max(coalesce(a.returned_at, a.closed_at)) AS failed_at,
               bool_or({WAS_SUCCESS}) AS seemed_well
          FROM (SELECT * FROM redrive_attempt t
                 WHERE t.letter_id = l.letter_id AND NOT t.spared AND t.outcome <> 'not_sent'
                 ORDER BY t.no DESC LIMIT l.max_attempts) a OFFSET 0) used
 CROSS JOIN LATERAL (
        SELECT max(a.id) AS id
          FROM ({NEWEST_SENDS.format(breaker="l.breaker_id")}) a
         WHERE a.breaker_id = l.breaker_id AND a.id > used.first
           AND a.letter_id <> l.letter_id AND a.counts_as_failure IS FALSE AND a.returned_at IS NULL OFFSET 0) well
 WHERE NOT used.seemed_well AND used.failed_at IS NOT NULL
"""  # noqa: S608  # the inserted texts are constants


@dataclass(frozen=True, slots=True)
class _Row(LastFailures):
    letter_id: int


def last_failures(letters: Collection[int]) -> dict[int, LastFailures]:
    """Return when the attempts of these messages were used up, and whether the target worked since, by letter id.

    Three kinds of messages are left out, since they are parked even if the target is down:

    - messages of manual runs;
    - messages whose failures count again, because a person resumed their run after the service had paused it;
    - messages that came back after an attempt of them had counted as a success.
    """
    if not letters:
        return {}
    found = rows.fetch(_Row, _LAST_FAILURES, {"letters": sorted(letters), "depth": ATTEMPTS_READ})
    return {row.letter_id: row for row in found}
