"""What the sent letters of each target wait for, before they are presumed delivered."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from reprocessing.models import rows
from reprocessing.models.evidence import GAP


@dataclass(frozen=True, slots=True)
class Expectation:
    """A target of a dlq, and what presuming its sent letters delivered still waits for.

    Attributes:
        unsettled: letters that are sent and not settled; of all dlqs that it is the target of.
        oldest_at: when the target took the oldest of them.
        until: until when that one may come back.
        seen_at: the first moment, late enough after it, at which the target had nothing visible.
        again_from: when it has to be looked at again: what failed would lie there, or be dead.
        again_at: the first moment from then on at which it had nothing visible.
        needed_from: a clean capture of the watched dlq that runs dry proves it when it began then or later.
    """

    dlq_id: int
    origin: str
    target_id: int
    target: str
    kind: str
    refires: int | None
    proof: str
    advance: str
    rate: float | None
    burst: float | None
    window: float
    watched_by: str | None
    watched_mode: str | None
    drained_through: datetime | None
    unsettled: int
    oldest_at: datetime | None
    until: datetime | None
    seen_at: datetime | None
    again_from: datetime | None
    again_at: datetime | None
    needed_from: datetime | None
    now: datetime


# The oldest unsettled letter of each target, and which of the conditions of `evidence.ripe` it does not meet yet.
_EXPECTATIONS = f"""
WITH open AS (
    SELECT a.target_id, count(*) AS unsettled, min(a.taken_at) AS oldest_at, min(a.deadline) AS until
      FROM redrive_attempt a WHERE a.closed_at IS NULL AND a.taken_at IS NOT NULL GROUP BY a.target_id
)
SELECT o.dlq_id, o.arn AS origin, t.id AS target_id, t.arn AS target, t.kind, t.refires, t.proof,
       t.advance, t.rate, t.burst, t.window,
       w.name AS watched_by, w.mode AS watched_mode, w.drained_through,
       coalesce(open.unsettled, 0) AS unsettled, open.oldest_at, open.until, s.seen_at,
       s.seen_at + {GAP} AS again_from, again.at AS again_at, greatest(open.until, again.at) AS needed_from,
       redrive_now() AS now
  FROM redrive_origin o
  JOIN redrive_target t ON t.id = o.target_id
  LEFT JOIN redrive_dlq w ON w.id = t.watched_by_id
  LEFT JOIN open ON open.target_id = t.id
  LEFT JOIN LATERAL (
        SELECT min(seen_at) AS seen_at FROM redrive_sighting
         WHERE target_id = t.id AND seen_at >= open.oldest_at + make_interval(secs => %(count_lag)b::float8)) s ON true
  LEFT JOIN LATERAL (
        SELECT min(g.seen_at) AS at FROM redrive_sighting g
         WHERE g.target_id = t.id AND g.seen_at >= s.seen_at + {GAP}) again ON true
 WHERE %(dlq)b::bigint IS NULL OR o.dlq_id = %(dlq)b::bigint
 ORDER BY o.dlq_id, o.arn
"""  # noqa: S608  # the inserted text is a constant


def of_targets(dlq: int | None = None, *, count_lag: float) -> list[Expectation]:
    """The targets of this dlq, or of every one. `count_lag`: seconds by which SQS's counts may lag behind."""
    return rows.fetch(Expectation, _EXPECTATIONS, {"dlq": dlq, "count_lag": count_lag})


def in_words(one: Expectation) -> str:
    """What has to happen before the oldest unsettled letter of a target is settled; empty: there is none."""
    if not one.unsettled or one.oldest_at is None or one.until is None:
        return ""
    if one.proof == "acknowledged" and one.now < one.until:
        return f"its consumer's word on its oldest letter, until {one.until:%H:%M:%S} UTC"
    if one.watched_by is None or one.watched_mode == "observe":
        return _unseen(one)
    if one.now < one.until:
        return f"its oldest letter may still come back, until {one.until:%H:%M:%S} UTC"
    return _lacking(one) or "the next promotion: the evidence is there"


def _unseen(one: Expectation) -> str:
    if one.proof == "acknowledged":
        return "nothing: its consumer's time is over, and the next promotion parks its oldest letter"
    watched = f"{one.watched_by} is in mode observe" if one.watched_by else "no watched dlq lies behind it"
    return f"nothing: {watched}, so it cannot be seen whether its letters come back"


def _lacking(one: Expectation) -> str:
    """What of the evidence of absence is not there yet, in the order in which it comes."""
    if one.seen_at is None or one.again_from is None:
        return f"it has not been seen empty since it took its oldest letter, at {one.oldest_at:%Y-%m-%d %H:%M:%S} UTC"
    if one.again_at is None or one.needed_from is None:
        return f"it has not been seen empty again since {one.again_from:%H:%M:%S} UTC: what failed may still lie there"
    if one.drained_through is None or one.drained_through < one.needed_from:
        return f"a capture of {one.watched_by} that begins after {one.needed_from:%H:%M:%S} UTC and runs dry"
    return ""
