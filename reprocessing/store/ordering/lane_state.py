"""Set the phase and due time of lanes, which depend on the lanes' heads (first unfinished letters).

The phase says whether the lane's next letter may be sent, is being sent, awaits its outcome, or is held. A fence is a
number that rises with every lease of a lane. Only the worker with the newest fence changes a leased lane.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reprocessing.store import rows
from reprocessing.store.ordering.active_runs import ACTIVE_RUNS
from reprocessing.store.ordering.lane_head import first_letters
from reprocessing.store.replay.settlement_effects import CLAIM_HAS_LAPSED
from reprocessing.store.safety.send_limits import HEAD_MAY_BE_SENT

# The head (first unfinished letter) decides the lane's phase. If the head may not be sent now, the lease is given back,
# unless the rules have not decided about the head yet. While an attempt has `holds_lane`, the lane's phase is awaiting,
# even if the head came back or was released. A null fence means that the caller has no lease; then a leased lane is not
# changed. `holds_lane` is looked up for each lane: with EXISTS the planner would read the whole partial index. A
# lane that stays leased keeps its `due_at` while three quarters of the lease are left: no index entry is written then.
_NEXT = f"""
WITH mine AS (
    SELECT * FROM unnest(%(lanes)b::bigint[], %(fences)b::bigint[], %(passed)b::text[]) AS m(lane_id, fence, passed)
), head AS (
    SELECT m.lane_id, m.fence AS my_fence, m.passed, h.*, d.max_attempts, d.stale AS stale_policy, d.receive_limit,
           CASE WHEN {CLAIM_HAS_LAPSED} THEN 'free' ELSE c.state END AS claim_state, c.letter_id AS claim_letter,
           c.body_hash = h.body_hash AS claim_same_body,
           CASE WHEN c.until > redrive_now() AND c.letter_id <> h.id THEN (
                SELECT extract(epoch FROM c.until - redrive_now())::float8 FROM redrive_letter w
                 WHERE w.id = c.letter_id AND w.finished_at IS NOT NULL) END AS claim_rests,
           CASE WHEN h.blocked_reason = 'moved_by_aws' THEN coalesce(d.drained_through >= d.aws_may_have_moved_at,
                  false) END AS gone,
           (d.when_parked = 'hold' AND (
                SELECT p.lane_id FROM redrive_letter p
                 WHERE p.lane_id = m.lane_id AND p.state = 'parked' LIMIT 1) IS NOT NULL)
           OR coalesce(h.route IN ('hold', 'erred') AND h.rulebook_version = coalesce(book.version, 0), false) AS held,
           b.id AS breaker_id, h.rulebook_version >= coalesce(book.version, 0) AS routed, o.stopped_at,
           h.state = 'awaiting' OR (
                SELECT a.deadline FROM redrive_attempt a
                 WHERE a.lane_id = m.lane_id AND a.holds_lane) IS NOT NULL AS awaits
      FROM mine m
      JOIN redrive_lane o ON o.id = m.lane_id
      JOIN redrive_dlq d ON d.id = o.dlq_id
      LEFT JOIN redrive_rulebook book ON book.id = 1
      LEFT JOIN LATERAL (
            SELECT l.id, l.state, l.due_at, l.run_id, l.sequence, l.dlq_id, l.target_id,
                   l.attempts - l.attempts_before_release - l.spared AS attempts,
                          l.attempts - l.attempts_before_release AS tries, l.body_hash,
                   l.attempts + l.not_sent = l.earlier AS never_sent, l.released_by IS NOT NULL AS released,
                   l.idempotency_key, l.message_id, l.rate_class_id, l.rule_id, l.route, l.rulebook_version,
                          l.blocked_reason
              FROM {first_letters("l", "m.lane_id")}) h ON true
      LEFT JOIN redrive_breaker b ON b.target_id = h.target_id AND b.rate_class_id IS NOT DISTINCT FROM h.rate_class_id
      LEFT JOIN redrive_claim c ON h.idempotency_key IS NOT NULL AND c.target_id = h.target_id
            AND c.key_space = h.dlq_id::text AND c.key_hash = sha256(convert_to(h.idempotency_key, 'UTF8'))
), judged AS (
    SELECT *, %(keep)b::bool AND my_fence IS NOT NULL AND coalesce(due_at <= redrive_now(), true)
              AND run_id IN ({ACTIVE_RUNS}) AND stopped_at IS NULL
              AND (SELECT {HEAD_MAY_BE_SENT} FROM (
                    SELECT head.run_id, CASE WHEN head.routed THEN head.breaker_id END AS breaker_id,
                           CASE WHEN NOT head.never_sent THEN head.lane_id END AS id) asked) AS kept
      FROM head
), moved AS (
    UPDATE redrive_lane n
       SET highest_sent_sequence = greatest(n.highest_sent_sequence, head.passed), run_id = head.run_id,
           phase = CASE WHEN head.id IS NULL THEN 'idle' WHEN head.held THEN 'held' WHEN head.awaits THEN 'awaiting'
                        WHEN head.kept THEN 'leased' ELSE 'ready' END,
           due_at = CASE WHEN head.id IS NULL OR head.held OR head.awaits THEN NULL
                         WHEN head.kept AND n.due_at > redrive_now() + make_interval(secs => 0.75 * %(lease)b::float8)
                         THEN n.due_at
                         WHEN head.kept THEN redrive_now() + make_interval(secs => %(lease)b::float8)
                         ELSE coalesce(head.due_at, redrive_now()) END,
           hinted_until = NULL, breaker_id = CASE WHEN head.routed THEN head.breaker_id END
      FROM judged head
     WHERE n.id = head.lane_id
       AND CASE WHEN head.my_fence IS NULL THEN n.phase <> 'leased'
                ELSE n.fence = head.my_fence AND n.phase = 'leased' END
    RETURNING n.id AS lane_id, n.fence, n.phase, n.highest_sent_sequence, head.id AS letter_id
)
SELECT moved.lane_id, moved.fence, moved.phase, moved.letter_id, head.dlq_id, head.target_id, head.attempts,
       head.max_attempts, head.never_sent, head.sequence < moved.highest_sent_sequence AS stale, head.stale_policy,
       head.released, cu.receives, head.receive_limit, head.claim_state, head.claim_letter, head.claim_same_body,
       head.claim_rests, head.gone, head.breaker_id, head.rate_class_id, head.rule_id, head.rulebook_version,
       head.tries, head.run_id, (SELECT r.rate FROM redrive_run r WHERE r.id = head.run_id) AS run_rate
  FROM moved JOIN head USING (lane_id)
  LEFT JOIN redrive_dlq_copy cu ON head.receive_limit IS NOT NULL AND cu.dlq_id = head.dlq_id
        AND cu.message_id = head.message_id
 ORDER BY moved.lane_id
"""  # noqa: S608  # the inserted text is the constant above


@dataclass(frozen=True, slots=True)
class LaneState:
    """A lane and its head (first unfinished letter) after `advance`. The values decide whether the head is sent."""

    lane_id: int
    fence: int
    phase: str
    letter_id: int | None  #: the head; None: the lane has no unfinished letter
    dlq_id: int | None
    target_id: int | None
    attempts: int | None
    max_attempts: int | None
    never_sent: bool | None
    stale: bool | None
    stale_policy: str | None
    released: bool | None
    receives: int | None
    receive_limit: int | None
    claim_state: str | None  #: None: no letter has claimed the head's idempotency key
    claim_letter: int | None
    claim_same_body: bool | None
    #: seconds for which the target may still have a message of the letter that claimed the key; None: it has no message
    claim_rests: float | None = None
    #: True: a capture after AWS's own redrive did not find the head; False: no capture yet; None: AWS did not move it
    gone: bool | None = None
    breaker_id: int | None = None  #: the breaker that counts the head's outcomes
    rate_class_id: int | None = None
    rule_id: int | None = None  #: the rule that decided about the head; None: no rule
    rulebook_version: int | None = None  #: the version of the rules that decided about the head
    run_id: int | None = None
    run_rate: float | None = None  #: highest rate of the run to each target (letters/s); None: the run has no limit
    tries: int | None = None  #: attempts since a person released the head, including attempts that do not count


def advance(
    lanes: Sequence[int],
    fences: Sequence[int | None],
    *,
    passed: Sequence[str | None] | None = None,
    keep: bool = False,
    lease: float = 0.0,
) -> list[LaneState]:
    """Set the phase and due time of each lane by its present head, and return the lanes.

    Call it after letters of the lanes were changed. `fences`: for each lane, the fence of the caller's lease; None: the
    caller has no lease, and a lane that a worker leases is not changed. `passed`: for each lane, the sequence of the
    letter that was sent just now; None: no letter was sent. `keep`: a lane whose head is due stays leased, for `lease`
    seconds.
    """
    passing = [None] * len(lanes) if passed is None else list(passed)
    values = {"lanes": list(lanes), "fences": list(fences), "passed": passing, "keep": keep, "lease": lease}
    return rows.fetch(LaneState, _NEXT, values)
