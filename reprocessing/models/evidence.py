"""What presuming a letter delivered rests on: two sightings of its target, and a clean capture of the dlq behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reprocessing.models import rows

# The target had nothing visible at some moment s, well after the send; and from s on more than a window has passed
# before the last clean, drained capture of the dlq began: had the letter failed, that capture would have met it.
# Unless it was in flight at s, failed, and its consumer has gone since: so the target has nothing visible after the
# window either.
_RIPE = """
WITH seen AS (
    SELECT t.id AS target_id, d.drained_through,
           (SELECT max(s.seen_at) FROM redrive_sighting s
             WHERE s.target_id = t.id
               AND s.seen_at + make_interval(secs => t.window) <= least(d.drained_through, again.seen_at)) AS seen_at
      FROM redrive_target t JOIN redrive_dlq d ON d.id = t.watched_by_id
     CROSS JOIN LATERAL (SELECT max(seen_at) AS seen_at FROM redrive_sighting WHERE target_id = t.id) again
     WHERE d.drained_through IS NOT NULL AND again.seen_at IS NOT NULL AND d.mode <> 'observe'
)
SELECT a.id AS attempt_id, a.lane_id, a.breaker_id, a.run_id
  FROM redrive_attempt a JOIN seen ON seen.target_id = a.target_id
 WHERE a.closed_at IS NULL AND a.taken_at IS NOT NULL AND a.deadline <= seen.drained_through
   AND a.taken_at + make_interval(secs => %(count_lag)b::float8) <= seen.seen_at
 ORDER BY a.lane_id LIMIT %(limit)b
"""

_WATCHED = """
SELECT DISTINCT t.id AS target_id, t.url, t.region, t.role_arn, t.watched_by_id AS dlq_id
  FROM redrive_target t
 WHERE t.watched_by_id IS NOT NULL
   AND EXISTS (SELECT FROM redrive_attempt a
                WHERE a.target_id = t.id AND a.closed_at IS NULL AND a.taken_at IS NOT NULL)
"""

# Kept as long as a letter may wait for it: the newest of each second is enough.
_SIGHT = """
WITH old AS (
    DELETE FROM redrive_sighting s USING redrive_target t
     WHERE t.id = ANY(%(targets)b::bigint[]) AND s.target_id = t.id
       AND s.seen_at < redrive_now() - make_interval(days => 1, secs => t.window)
)
INSERT INTO redrive_sighting (target_id, seen_at) SELECT t, %(at)b FROM unnest(%(targets)b::bigint[]) AS t
"""


@dataclass(frozen=True, slots=True)
class Ripe:
    """An open attempt whose letter may now be presumed delivered, with its breaker and its run."""

    attempt_id: int
    lane_id: int
    breaker_id: int | None = None
    run_id: int | None = None


@dataclass(frozen=True, slots=True)
class Watched:
    """A target that has letters whose outcome is open, and the dlq behind it."""

    target_id: int
    url: str
    region: str
    role_arn: str
    dlq_id: int


def ripe(*, count_lag: float, limit: int) -> list[Ripe]:
    """Attempts that may be closed as absent, by lane. `count_lag`: seconds by which SQS's counts may lag behind."""
    return rows.fetch(Ripe, _RIPE, {"count_lag": count_lag, "limit": limit})


def watched() -> list[Watched]:
    """Targets that have letters whose outcome waits for evidence."""
    return rows.fetch(Watched, _WATCHED, {})


def sight(targets: Sequence[int], *, at: object) -> None:
    """Remember that these targets had nothing visible when they were asked, at `at`; old sightings go."""
    if targets:
        rows.execute(_SIGHT, {"targets": list(targets), "at": at})
