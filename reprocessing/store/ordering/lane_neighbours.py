"""Read the other letters in a letter's lane: the head, the letters just before and after it, and parked letters."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final, LiteralString

from reprocessing.store import rows
from reprocessing.store.ordering.lane_head import first_letters
from reprocessing.store.ordering.why_lanes_wait import LAST_REASON, OBSTACLE, OBSTACLE_JOINS

#: Later letters, and parked letters, of a lane are counted up to 1,001, which means "more than 1,000".
COUNTED_AT_MOST: Final = 1_000

# The condition of an index. Without it, the planner would read the whole table of letters for a long lane.
_OPEN: Final[LiteralString] = "lane_id = l.lane_id AND state IN ('waiting', 'sending', 'awaiting') AND NOT frees_lane"

_AMONG = f"""
SELECT n.id AS lane_id, n.phase, n.due_at, n.due_at <= redrive_now() AS is_due, {LAST_REASON} AS why, n.single,
       n.stopped_at, n.stopped_by, n.stop_reason, {OBSTACLE} AS obstacle,
       CASE WHEN b.state <> 'closed' THEN b.id END AS breaker_id, d.when_parked = 'hold' AS holds,
       h.id AS head_id, h.message_id AS head, h.state AS head_state, h.route AS head_route, u.name AS head_rule,
       p.id AS before_id, p.message_id AS before, f.id AS after_id, f.message_id AS after,
       (SELECT count(*) FROM (
            SELECT FROM redrive_letter WHERE {_OPEN} AND (sequence, message_id) > (l.sequence, l.message_id)
             ORDER BY sequence, message_id LIMIT %(most)b::int + 1) few) AS behind,
       (SELECT count(*) FROM (
            SELECT FROM redrive_letter WHERE lane_id = l.lane_id AND state = 'parked' AND id <> l.id
             LIMIT %(most)b::int + 1) few) AS parked
  FROM redrive_letter l JOIN redrive_lane n ON n.id = l.lane_id {OBSTACLE_JOINS}
  LEFT JOIN LATERAL (
        SELECT id, message_id, state, route, rule_id FROM redrive_letter WHERE {_OPEN}
         ORDER BY sequence, message_id LIMIT 1) h ON true
  LEFT JOIN redrive_rule u ON u.id = h.rule_id
  LEFT JOIN LATERAL (
        SELECT id, message_id FROM redrive_letter
         WHERE {_OPEN} AND (sequence, message_id) < (l.sequence, l.message_id)
         ORDER BY sequence DESC, message_id DESC LIMIT 1) p ON true
  LEFT JOIN LATERAL (
        SELECT id, message_id FROM redrive_letter
         WHERE {_OPEN} AND (sequence, message_id) > (l.sequence, l.message_id)
         ORDER BY sequence, message_id LIMIT 1) f ON true
 WHERE l.id = %(letter)b
"""  # noqa: S608  # the inserted texts are constants


_HEAD = f"SELECT l.id FROM {first_letters('l', '%(lane)b::bigint')}"  # noqa: S608  # the inserted text is a constant


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The lane of a letter, and the letters before and after it in the lane."""

    lane_id: int
    phase: str
    due_at: datetime | None
    is_due: bool | None
    why: str
    single: bool
    stopped_at: datetime | None
    stopped_by: str
    stop_reason: str
    obstacle: str  #: why no worker may lease the lane even if it is due; empty: nothing prevents that
    breaker_id: int | None  #: the circuit breaker of the lane's first letter; None: it is closed, or not known
    holds: bool  #: a parked letter keeps the next letters of the lane from being sent
    head_id: int | None  #: the lane's first unfinished letter; None: all are finished
    head: str | None
    head_state: str | None
    head_route: str | None
    head_rule: str | None
    before_id: int | None  #: the unfinished letter just before this letter; `after_id`: just after this letter
    before: str | None
    after_id: int | None
    after: str | None
    behind: int  #: number of unfinished letters after this letter; see `COUNTED_AT_MOST`
    parked: int  #: number of other parked letters in the lane; see `COUNTED_AT_MOST`


def neighbours_of(letter: int) -> Neighbours | None:
    """Return the lane of this letter, with the letters around it; None if the letter has no lane yet."""
    return rows.first(Neighbours, _AMONG, {"letter": letter, "most": COUNTED_AT_MOST})


def head_of(lane: int) -> int | None:
    """Return the id of the first unfinished letter of this lane; None: all its letters are finished."""
    return next(iter(rows.column(int, _HEAD, {"lane": lane})), None)
