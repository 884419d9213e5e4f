"""Lease lanes, choose lanes for task hints, and set each lane's state by its head (first unfinished letter).

A fence is a number that rises with every lease of a lane. Only the worker with the newest fence changes a leased lane.
A task hint is a Celery task that names due lanes.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, LiteralString

from reprocessing.store import rows
from reprocessing.store.ordering.active_runs import ACTIVE_RUNS, ANSWERED_RUNS, KNOWN_RUNS
from reprocessing.store.ordering.lane_state import LaneState
from reprocessing.store.replay.settlement_effects import LAPSED
from reprocessing.store.safety.send_limits import FULL, MAY_GO, SHUT, UNTOLD


@dataclass(frozen=True, slots=True)
class LeasedLane:
    """A lane that the caller has leased. `inherited`: the worker that had leased it before was killed."""

    lane_id: int
    fence: int
    inherited: bool


# Lanes that killed workers leased come first, then the lanes that have been due longest, in index order. The clock is a
# subquery, so that the planner reads only the due part of the index. Whether a run is active is checked for each lane
# of a killed worker, not by a join with the runs. Lanes whose breaker permits no send are not read: for each
# run, the breakers of its ready lanes are found by steps in an index, and only lanes of breakers that are usable or not
# known are read. If the wave of a run is full, only lanes that the wave waits for are read.
_DUE: Final[LiteralString] = f"""
WITH RECURSIVE active AS MATERIALIZED ({{runs}}), waved AS MATERIALIZED ({FULL}), going AS MATERIALIZED (
    SELECT id AS run_id FROM active WHERE id NOT IN (SELECT run_id FROM waved)
), met AS (
    SELECT run_id, 0::bigint AS breaker_id FROM going
     UNION ALL
    SELECT met.run_id, (
        SELECT n.breaker_id FROM redrive_lane n
         WHERE n.phase = 'ready' AND n.run_id = met.run_id AND n.breaker_id > met.breaker_id
         ORDER BY n.run_id, n.breaker_id LIMIT 1)
      FROM met WHERE met.breaker_id IS NOT NULL
), open AS MATERIALIZED (
    SELECT run_id, breaker_id FROM met WHERE breaker_id > 0 AND breaker_id NOT IN ({SHUT}){{but}}
)
SELECT id, phase FROM (
    SELECT * FROM (
        SELECT id, phase, due_at FROM redrive_lane
         WHERE phase = 'leased' AND coalesce(run_id IN (SELECT id FROM active), false)
           AND due_at <= (SELECT redrive_now()) AND {{wanted}}
         ORDER BY due_at LIMIT %(limit)b FOR UPDATE SKIP LOCKED) orphaned
    UNION ALL
    SELECT d.* FROM open b CROSS JOIN LATERAL (
        SELECT id, phase, due_at FROM redrive_lane
         WHERE phase = 'ready' AND run_id = b.run_id AND breaker_id = b.breaker_id AND due_at <= (SELECT redrive_now())
           AND {{wanted}}
         ORDER BY due_at LIMIT %(limit)b FOR UPDATE SKIP LOCKED) d
    UNION ALL
    SELECT d.* FROM going r CROSS JOIN LATERAL (
        SELECT id, phase, due_at FROM redrive_lane
         WHERE phase = 'ready' AND run_id = r.run_id AND breaker_id IS NULL AND due_at <= (SELECT redrive_now())
           AND {{wanted}}
         ORDER BY breaker_id, due_at LIMIT %(limit)b FOR UPDATE SKIP LOCKED) d
    UNION ALL
    SELECT * FROM (
        SELECT id, phase, due_at FROM redrive_lane
         WHERE id = ANY (ARRAY ({UNTOLD})) AND phase || '' = 'ready' AND due_at <= (SELECT redrive_now())
           AND run_id IN (SELECT run_id FROM waved) AND run_id IN (SELECT id FROM active)
           AND (breaker_id IS NULL OR breaker_id NOT IN ({SHUT})) AND {{wanted}}
         ORDER BY due_at LIMIT %(limit)b FOR UPDATE SKIP LOCKED) untold) due
 ORDER BY phase = 'leased' DESC, due_at, id LIMIT %(limit)b
"""  # noqa: S608  # the inserted texts are constants

_LEASE_DUE: Final[LiteralString] = """
UPDATE redrive_lane n
   SET phase = 'leased', due_at = redrive_now() + make_interval(secs => %(lease)b::float8),
       fence = nextval('redrive_fence'), owner = %(owner)b, hinted_until = NULL, why = ''
  FROM ({due}) due WHERE n.id = due.id
RETURNING n.id AS lane_id, n.fence, due.phase = 'leased' AS inherited
"""

_LEASE = _LEASE_DUE.format(
    due=_DUE.format(
        runs=KNOWN_RUNS,
        but=" AND breaker_id <> ALL(%(but)b::bigint[])",
        wanted="(%(runs)b::bigint[] IS NULL OR run_id = ANY(%(runs)b::bigint[]))"
        " AND (breaker_id IS NULL OR breaker_id <> ALL(%(but)b::bigint[])) AND stopped_at IS NULL",
    )
)

_LEASE_THESE = _LEASE_DUE.format(
    due=f"""
SELECT id, phase FROM redrive_lane
 WHERE id = ANY(%(only)b::bigint[]) AND run_id IN ({KNOWN_RUNS}) AND due_at <= redrive_now()
   AND (%(runs)b::bigint[] IS NULL OR run_id = ANY(%(runs)b::bigint[]))
   AND stopped_at IS NULL AND (phase = 'leased' OR {MAY_GO})
 ORDER BY phase = 'leased' DESC, due_at, id LIMIT %(limit)b FOR UPDATE SKIP LOCKED"""  # noqa: S608  # as above
)

_LOCK = """
SELECT n.id AS lane_id FROM redrive_lane n
  JOIN unnest(%(lanes)b::bigint[], %(fences)b::bigint[]) AS m(lane_id, fence) ON m.lane_id = n.id
 WHERE m.fence IS NULL OR (n.fence = m.fence AND n.phase = 'leased')
 ORDER BY n.id FOR UPDATE OF n
"""

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
           CASE WHEN {LAPSED} THEN 'free' ELSE c.state END AS claim_state, c.letter_id AS claim_letter,
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
              FROM redrive_letter l
             WHERE l.lane_id = m.lane_id AND l.state IN ('waiting', 'sending', 'awaiting') AND NOT l.frees_lane
             ORDER BY l.sequence, l.message_id LIMIT 1) h ON true
      LEFT JOIN redrive_breaker b ON b.target_id = h.target_id AND b.rate_class_id IS NOT DISTINCT FROM h.rate_class_id
      LEFT JOIN redrive_claim c ON h.idempotency_key IS NOT NULL AND c.target_id = h.target_id
            AND c.key_space = h.dlq_id::text AND c.key_hash = sha256(convert_to(h.idempotency_key, 'UTF8'))
), judged AS (
    SELECT *, %(keep)b::bool AND my_fence IS NOT NULL AND coalesce(due_at <= redrive_now(), true)
              AND run_id IN ({ACTIVE_RUNS}) AND stopped_at IS NULL
              AND (SELECT {MAY_GO} FROM (
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
       head.claim_rests, head.gone, head.breaker_id, head.rate_class_id, head.rule_id, head.rulebook_version, head.tries
  FROM moved JOIN head USING (lane_id)
  LEFT JOIN redrive_dlq_copy cu ON head.receive_limit IS NOT NULL AND cu.dlq_id = head.dlq_id
        AND cu.message_id = head.message_id
 ORDER BY moved.lane_id
"""  # noqa: S608  # the inserted text is the constant above

_RENEW = """
UPDATE redrive_lane n SET due_at = redrive_now() + make_interval(secs => %(lease)b::float8)
  FROM unnest(%(lanes)b::bigint[], %(fences)b::bigint[]) AS m(lane_id, fence)
 WHERE n.id = m.lane_id AND n.fence = m.fence AND n.phase = 'leased'
RETURNING n.id AS lane_id
"""

_HAND_BACK = """
UPDATE redrive_lane n
   SET phase = 'ready', owner = '', due_at = redrive_now() + make_interval(secs => m.secs), why = m.why,
       breaker_id = m.breaker_id
  FROM unnest(%(lane_id)b::bigint[], %(fence)b::bigint[], %(after)b::float8[], %(why)b::text[],
              %(breaker_id)b::bigint[]) AS m(lane_id, fence, secs, why, breaker_id)
 WHERE n.id = m.lane_id AND n.fence = m.fence AND n.phase = 'leased'
"""

_HINT = f"""
UPDATE redrive_lane n SET hinted_until = redrive_now() + make_interval(secs => %(lifetime)b::float8)
  FROM ({
    _DUE.format(
        runs=ANSWERED_RUNS, but="", wanted="coalesce(hinted_until <= redrive_now(), true) AND stopped_at IS NULL"
    )
}) due
 WHERE n.id = due.id
RETURNING n.id AS lane_id
"""  # noqa: S608  # the inserted text is constant

_ARE_LEASED = """
SELECT EXISTS (SELECT FROM redrive_lane WHERE phase = 'leased' AND due_at > redrive_now()) AS leased
"""


def lease(  # noqa: PLR0913  # each by its name
    owner: str,
    *,
    limit: int,
    lease: float,
    only: Sequence[int] | None = None,
    runs: Sequence[int] | None = None,
    but: Collection[int] = (),
) -> list[LeasedLane]:
    """Lease and return up to `limit` due lanes of active runs, for `lease` seconds, those of killed workers first.

    Locked lanes, and lanes of DLQs whose messages AWS may have moved, are left out. `only`: lease only these lanes;
    None: any lane, except those whose head has a circuit breaker in `but`. `runs`: only lanes of these runs; None: of
    all runs. `owner`: name of the worker.
    """
    values = {
        "owner": owner, "limit": limit, "lease": lease,
        "only": list(only or ()), "runs": None if runs is None else list(runs), "but": list(but),
    }  # fmt: skip
    return rows.fetch(LeasedLane, _LEASE if only is None else _LEASE_THESE, values)


def lock(lanes: Sequence[int], fences: Sequence[int | None]) -> set[int]:
    """Lock these lanes until the transaction ends, in the order of their ids; return the ids of the locked lanes.

    `fences`: a lane that is not leased with this fence any more is not locked. None: lock the lane in any case.
    """
    return set(rows.column(int, _LOCK, {"lanes": list(lanes), "fences": list(fences)}))


def advance(
    lanes: Sequence[int],
    fences: Sequence[int | None],
    *,
    passed: Sequence[str | None] | None = None,
    keep: bool = False,
    lease: float = 0.0,
) -> list[LaneState]:
    """Set the phase and due time of each lane by its head, and return the lanes. Call it after letters were changed.

    `fences`: the fences of the caller's leases; None: the caller has no lease, and a leased lane is not changed.
    `passed`: for each lane, the sequence of the letter that was sent just now; None: no letter. `keep`: a lane whose
    head is due stays leased, for `lease` seconds.
    """
    passing = [None] * len(lanes) if passed is None else list(passed)
    values = {"lanes": list(lanes), "fences": list(fences), "passed": passing, "keep": keep, "lease": lease}
    return rows.fetch(LaneState, _NEXT, values)


def renew(lanes: Sequence[int], fences: Sequence[int], *, lease: float) -> set[int]:
    """Renew leases for `lease` seconds; return the ids of the lanes that the caller still leases."""
    return set(rows.column(int, _RENEW, {"lanes": list(lanes), "fences": list(fences), "lease": lease}))


@dataclass(frozen=True, slots=True)
class HandedBack:
    """A leased lane that is given back: due in `after` seconds. `why`: why it waits; `breaker_id`: of its head."""

    lane_id: int
    fence: int
    after: float = 0.0
    why: str = ""
    breaker_id: int | None = None


def hand_back(some: Sequence[HandedBack]) -> None:
    """Give leased lanes back, for any worker. A lane whose lease the caller has lost is not changed."""
    rows.execute(_HAND_BACK, rows.arrays(HandedBack, some))


def are_leased() -> bool:
    """Return whether any lane is leased; then a worker is sending letters now."""
    return rows.value(bool, _ARE_LEASED, {})


def hint(*, limit: int, lifetime: float) -> list[int]:
    """Return the ids of up to `limit` due lanes without a task hint; they count as hinted for `lifetime` seconds."""
    return rows.column(int, _HINT, {"limit": limit, "lifetime": lifetime})


def database_now() -> datetime:
    """Return the database's time (`redrive_now`), by which leases and deadlines are set."""
    return rows.value(datetime, "SELECT redrive_now() AS now", {})
