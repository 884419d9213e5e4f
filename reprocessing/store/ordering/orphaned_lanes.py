"""Close the attempts that a killed worker left open in its leased lanes, and queue or park their letters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reprocessing.store import rows
from reprocessing.store.replay.settlement_effects import CLAIMS_AND_COPIES, COPY_UNTIL, HOLDS_LANE

# The outcome of these attempts is unknown. Their letters are sent again with the same idempotency key and `epoch`. If a
# letter has no attempt left, and `HOLDS_LANE` is true of its target, the lane waits until the message cannot return.
# An attempt that a killed worker left open still holds its lane, so the index `one_lane_holding_attempt_per_lane` has
# it. `num_nonnulls` keeps the planner from the index `open_attempts_by_target`, which it would scan whole.
_CLOSE = f"""
UPDATE redrive_attempt a
   SET outcome = CASE WHEN NOT w.lasts THEN 'unknown' END, closed_at = CASE WHEN NOT w.lasts THEN redrive_now() END,
       holds_lane = w.lasts, detail = 'its worker was lost before the outcome was recorded',
       deadline = CASE WHEN w.lasts THEN redrive_now() + make_interval(secs => t.window) END
  FROM redrive_lane n, redrive_letter l, redrive_dlq d, redrive_target t
 CROSS JOIN LATERAL (
       SELECT l.attempts - l.attempts_before_release - l.spared >= d.max_attempts AND {HOLDS_LANE} AS lasts) w
 WHERE n.id = ANY(%(lanes)b::bigint[]) AND n.phase = 'leased' AND n.owner = %(owner)b
   AND a.id = ANY (ARRAY (
       SELECT (SELECT h.id FROM redrive_attempt h WHERE h.lane_id = m.id AND h.holds_lane)
         FROM unnest(%(lanes)b::bigint[]) AS m(id)))
   AND n.id = a.lane_id AND num_nonnulls(a.closed_at, a.taken_at, a.deadline) = 0 AND a.fence < n.fence
   AND l.id = a.letter_id AND d.id = l.dlq_id AND t.id = a.target_id
RETURNING a.breaker_id, a.run_id
"""  # noqa: S608  # the inserted text is a constant

# `NOT l.frees_lane` is true of each letter in state sending. With it, the planner can use the index
# `letters_by_lane_and_sequence`, which has no finished letters.
_WAIT = f"""
WITH found AS (
    SELECT l.id, l.sequence, l.lane_id, l.attempts - l.attempts_before_release - l.spared >= d.max_attempts AS spent,
           (SELECT a.deadline FROM redrive_attempt a WHERE a.letter_id = l.id AND a.holds_lane) AS until
      FROM redrive_letter l JOIN redrive_lane n ON n.id = l.lane_id JOIN redrive_dlq d ON d.id = l.dlq_id
     WHERE n.id = ANY(%(lanes)b::bigint[]) AND n.owner = %(owner)b AND l.state = 'sending' AND NOT l.frees_lane
), passed AS (
    UPDATE redrive_lane n SET highest_sent_sequence = greatest(n.highest_sent_sequence, f.sequence)
      FROM (SELECT lane_id, max(sequence) AS sequence FROM found GROUP BY lane_id) f WHERE n.id = f.lane_id
), moved AS (
    UPDATE redrive_letter l
       SET state = CASE WHEN f.spent THEN 'parked' ELSE 'waiting' END, due_at = NULL,
           reason = CASE WHEN f.spent THEN 'attempts_spent' ELSE '' END,
           blocked_reason = CASE WHEN f.spent THEN '' ELSE l.blocked_reason END,
           detail = CASE WHEN f.spent THEN 'the outcome of the last attempt is not known' ELSE '' END,
           finished_at = CASE WHEN f.spent THEN redrive_now() END
      FROM found f WHERE l.id = f.id AND l.state = 'sending'
    RETURNING l.id, l.dlq_id, l.message_id, l.target_id, l.idempotency_key, l.state,
              CASE WHEN f.spent THEN 'free' ELSE 'held' END AS claim, coalesce(f.until, {COPY_UNTIL}) AS until
), {CLAIMS_AND_COPIES}
SELECT count(*) FROM moved
"""  # noqa: S608  # the inserted texts are constants


@dataclass(frozen=True, slots=True)
class OrphanedAttempt:
    """The ids of the circuit breaker and the run of an attempt that was open when its worker was killed."""

    breaker_id: int | None
    run_id: int | None


def close_attempts(owner: str, lanes: Sequence[int]) -> list[OrphanedAttempt]:
    """Close the attempts that killed workers left open in these lanes, with outcome unknown; return these attempts.

    The attempts' letters are queued again, or parked if they have no attempt left. `owner`: name of the worker that
    leases the lanes now. Call it in a transaction, with the lanes locked.
    """
    values = {"lanes": list(lanes), "owner": owner}
    closed = rows.fetch(OrphanedAttempt, _CLOSE, values)
    rows.execute(_WAIT, values)
    return closed
