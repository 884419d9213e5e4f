"""Find letters that may be presumed delivered: their target was seen empty, and they did not come back to the DLQ.

A *look* is one request for the message counts of a target queue.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, LiteralString

from reprocessing.store import rows

# Seconds between two looks at a target without visible messages: the target's window, or its visibility timeout plus
# the lag of SQS's counts, whichever is longer. A message that failed is in flight or in the DLQ at the first look. At
# the second look it has left the target, so a capture that begins later finds it in the DLQ. If the result of a last
# attempt is unknown, the times count from the loss of its worker.
WINDOW_PAUSE: Final[LiteralString] = "make_interval(secs => greatest(t.window, t.visibility + %(count_lag)b::float8))"
# Seconds between two looks at an empty target. SQS's counts are up to `count_lag` seconds old. So after this pause, the
# second look shows a later state than the first (docs/adr/0029).
COUNT_PAUSE: Final[LiteralString] = "make_interval(secs => %(count_lag)b::float8)"
#: Seconds between two looks of beat at the same target, at least.
LOOKS_EVERY: Final = 2.0
# The shortest time (s) from a send to its outcome: until the target is seen empty twice, or until its window has
# passed.
LEAST_WAIT: Final[LiteralString] = f"least(t.window, %(count_lag)b::float8 + {LOOKS_EVERY}) + %(count_lag)b::float8"
# The time at which SQS had answered a look. A look shows some moment between the request (`seen_at`) and the answer. So
# a look is after an event if `seen_at` is, and an event is after a look if it is after `LOOK_ANSWERED_AT`.
LOOK_ANSWERED_AT: Final[LiteralString] = "s.seen_at + make_interval(secs => s.took)"
# The time from which the pause between two looks counts. If no pause is needed, one look may count as both.
PAUSE_BEGINS: Final[LiteralString] = f"CASE WHEN s.seen_at = again.seen_at THEN s.seen_at ELSE {LOOK_ANSWERED_AT} END"
#: How many looks in a row must find the target empty, if SQS's counts are not exact.
MIN_LOOKS = 4
# The counts of one look may be of different ages, so a look may miss a message whose state has just changed. It is
# unlikely that several looks in a row miss the message. Beat makes about 30 looks in a pause of 60 s.
ENOUGH_LOOKS: Final[LiteralString] = """(%(count_lag)b::float8 = 0 OR %(looks)b::int <= (SELECT count(*) FROM (
                    SELECT FROM redrive_target_check m
                     WHERE m.target_id = s.target_id AND m.seen_at BETWEEN s.seen_at AND again.seen_at
                     LIMIT %(looks)b::int) m))"""
_SETTLED: Final[LiteralString] = f"""
WITH seen AS MATERIALIZED (
    SELECT t.id AS target_id, d.drained_through,
           (SELECT s.seen_at FROM redrive_target_check s
             WHERE s.target_id = t.id AND s.empty AND s.seen_at <= again.seen_at - {WINDOW_PAUSE}
               AND {PAUSE_BEGINS} + {WINDOW_PAUSE} <= again.seen_at
             ORDER BY s.seen_at DESC LIMIT 1) AS seen_at
      FROM redrive_target t JOIN redrive_dlq d ON d.id = t.watched_by_id
     CROSS JOIN LATERAL (SELECT s.seen_at FROM redrive_target_check s
                          WHERE s.target_id = t.id AND s.empty AND s.seen_at <= d.drained_through
                            AND {LOOK_ANSWERED_AT} <= d.drained_through
                          ORDER BY s.seen_at DESC LIMIT 1) again
     WHERE d.mode <> 'observe'
)
SELECT a.id AS attempt_id, a.lane_id, a.breaker_id, a.run_id
  FROM redrive_attempt a JOIN seen ON seen.target_id = a.target_id JOIN redrive_target t ON t.id = a.target_id
 WHERE a.closed_at IS NULL AND a.deadline <= seen.drained_through
"""  # noqa: S608  # the inserted text is a constant

# Two looks a pause apart, and every look between them, found no message in the target: visible, in flight or delayed.
# So a message that the target accepted before the first look has left it, and is in the DLQ if it failed. If the
# consumer is to report, the target's window must also have passed.
_EMPTIED: Final[LiteralString] = f"""
WITH quiet AS MATERIALIZED (
    SELECT t.id AS target_id, d.drained_through,
           (SELECT s.seen_at FROM redrive_target_check s
             WHERE s.target_id = t.id AND s.idle_since >= again.idle_since
               AND s.seen_at <= again.seen_at - {COUNT_PAUSE}
               AND {PAUSE_BEGINS} + {COUNT_PAUSE} <= again.seen_at
               AND {ENOUGH_LOOKS}
             ORDER BY s.seen_at DESC LIMIT 1) AS seen_at
      FROM redrive_target t JOIN redrive_dlq d ON d.id = t.watched_by_id AND d.mode <> 'observe'
     CROSS JOIN LATERAL (SELECT s.seen_at, s.idle_since FROM redrive_target_check s
                          WHERE s.target_id = t.id AND s.idle_since + {COUNT_PAUSE} <= s.seen_at
                            AND s.seen_at <= d.drained_through AND {LOOK_ANSWERED_AT} <= d.drained_through
                          ORDER BY s.seen_at DESC LIMIT 1) again
)
SELECT a.id AS attempt_id, a.lane_id, a.breaker_id, a.run_id
  FROM redrive_attempt a JOIN quiet ON quiet.target_id = a.target_id JOIN redrive_target t ON t.id = a.target_id
 WHERE a.closed_at IS NULL AND a.taken_at + make_interval(secs => %(count_lag)b::float8) <= quiet.seen_at
   AND (t.proof <> 'acknowledged' OR a.deadline <= quiet.drained_through)
"""  # noqa: S608  # as above

# The target's outcome was changed to `accepted` after these messages were sent: the target has accepted them.
_ACCEPTED = """
SELECT a.id AS attempt_id, a.lane_id, a.breaker_id, a.run_id
  FROM redrive_target t JOIN redrive_attempt a ON a.target_id = t.id
 WHERE t.proof = 'accepted' AND a.closed_at IS NULL AND a.taken_at IS NOT NULL
 ORDER BY a.lane_id LIMIT %(limit)b
"""

_PRESUMABLE = f"""
SELECT * FROM ({_SETTLED}
   AND a.taken_at + make_interval(secs => %(count_lag)b::float8) <= seen.seen_at
) by_window UNION SELECT * FROM ({_EMPTIED}) by_emptiness
 ORDER BY lane_id LIMIT %(limit)b
"""  # noqa: S608  # as above

_OUTLASTED = f"""
{_SETTLED}
   AND a.taken_at IS NULL
   AND a.deadline + make_interval(secs => %(count_lag)b::float8 - t.window) <= seen.seen_at
 ORDER BY a.lane_id LIMIT %(limit)b
"""

_WATCHED = """
SELECT DISTINCT t.id AS target_id, t.url, t.region, t.role_arn, t.watched_by_id AS dlq_id
  FROM redrive_target t
 WHERE t.watched_by_id IS NOT NULL
   AND EXISTS (SELECT FROM redrive_attempt a
                WHERE a.target_id = t.id AND a.closed_at IS NULL AND num_nonnulls(a.taken_at, a.deadline) > 0)
"""

# A look is stored while a letter may need it as evidence. A look that found messages is stored only if the previous
# look found none: then it shows when the target stopped being empty.
_WRITE_LOOKS = """
WITH old AS (
    DELETE FROM redrive_target_check WHERE id = ANY (ARRAY (
        SELECT o.id FROM redrive_target t
         CROSS JOIN LATERAL (
            SELECT s.id FROM redrive_target_check s
             WHERE s.target_id = t.id
               AND s.seen_at < (SELECT redrive_now()) - make_interval(days => 1, secs => t.window)
             ORDER BY s.target_id, s.seen_at DESC LIMIT 1000) o
         WHERE t.id = ANY(%(target_id)b::bigint[])))
)
INSERT INTO redrive_target_check (target_id, seen_at, took, empty, idle_since)
SELECT q.target_id, %(at)b, %(took)b::float8, q.empty,
       CASE WHEN q.quiet THEN coalesce(latest.idle_since, %(at)b::timestamptz) END
  FROM unnest(%(target_id)b::bigint[], %(empty)b::bool[], %(quiet)b::bool[]) AS q(target_id, empty, quiet)
  LEFT JOIN LATERAL (SELECT s.empty, s.idle_since FROM redrive_target_check s
                      WHERE s.target_id = q.target_id ORDER BY s.seen_at DESC LIMIT 1) latest ON true
 WHERE q.empty OR latest.empty
"""

_STILL_OPEN = "SELECT id FROM redrive_attempt WHERE id = ANY(%(attempts)b::bigint[]) AND closed_at IS NULL"


@dataclass(frozen=True, slots=True)
class OpenAttempt:
    """An attempt without an outcome, which the caller can close now."""

    attempt_id: int
    lane_id: int
    breaker_id: int | None = None
    run_id: int | None = None


@dataclass(frozen=True, slots=True)
class WatchedTarget:
    """A target with letters whose outcome is open, and the watched DLQ into which its messages fail."""

    target_id: int
    url: str
    region: str
    role_arn: str
    dlq_id: int


@dataclass(frozen=True, slots=True)
class TargetLook:
    """What SQS's counts of a target queue showed at one look.

    `empty`: no message is visible or delayed; `quiet`: no message is visible, delayed or in flight.
    """

    target_id: int
    empty: bool
    quiet: bool


def presumable_attempts(*, count_lag: float, limit: int) -> list[OpenAttempt]:
    """Return up to `limit` attempts whose letters may be presumed delivered, sorted by lane.

    `count_lag`: seconds by which SQS's counts may lag.
    """
    return rows.fetch(OpenAttempt, _PRESUMABLE, {"count_lag": count_lag, "looks": MIN_LOOKS, "limit": limit})


def accepted_attempts(*, limit: int) -> list[OpenAttempt]:
    """Return up to `limit` attempts that the target accepted, if that now counts as delivery, sorted by lane.

    It counts as delivery if the target's required outcome was changed to `accepted` after the message was sent.
    """
    return rows.fetch(OpenAttempt, _ACCEPTED, {"limit": limit})


def outlasted_attempts(*, count_lag: float, limit: int) -> list[OpenAttempt]:
    """Return up to `limit` attempts with an unknown result that may be closed, sorted by lane.

    Each is the last attempt of a parked letter. Its message did not come back to a DLQ, and can no longer come back.
    `count_lag`: seconds by which SQS's counts may lag.
    """
    return rows.fetch(OpenAttempt, _OUTLASTED, {"count_lag": count_lag, "limit": limit})


def still_open(found: Sequence[OpenAttempt]) -> list[OpenAttempt]:
    """Return those of these attempts that are not closed yet, in the same order."""
    left = set(rows.column(int, _STILL_OPEN, {"attempts": [attempt.attempt_id for attempt in found]}))
    return [attempt for attempt in found if attempt.attempt_id in left]


def watched_targets() -> list[WatchedTarget]:
    """Return the targets with letters whose outcome must be found by looks at the target queue and by captures."""
    return rows.fetch(WatchedTarget, _WATCHED, {})


def record_looks(looks: Sequence[TargetLook], *, at: object, took: float) -> None:
    """Record looks: what SQS's counts of target queues showed.

    `at`: when the counts were requested. `took`: seconds until SQS had answered. Looks that are older than a day plus
    the target's window (the time in which a failed message may come back to the DLQ) are deleted.
    """
    if looks:
        rows.execute(_WRITE_LOOKS, {**rows.arrays(TargetLook, looks), "at": at, "took": took})
