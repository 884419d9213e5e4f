"""Lease lanes, renew leases and give lanes back, and choose lanes for task hints.

A worker leases a lane before it sends the lane's letters. A fence is a number that rises with every lease of a lane.
Only the worker with the newest fence changes a leased lane. A task hint is a Celery task that names due lanes.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, LiteralString

from reprocessing.domain.message.identity import key_hash
from reprocessing.store import rows
from reprocessing.store.ordering.active_runs import ANSWERED_RUNS, KNOWN_RUNS
from reprocessing.store.safety.send_limits import (
    BLOCKED_BREAKERS,
    EXEMPT_FROM_WAVE,
    FULL_WAVE_RUNS,
    HEAD_MAY_BE_SENT,
)


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
WITH RECURSIVE active AS MATERIALIZED ({{runs}}), waved AS MATERIALIZED ({FULL_WAVE_RUNS}), going AS MATERIALIZED (
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
    SELECT run_id, breaker_id FROM met WHERE breaker_id > 0 AND breaker_id NOT IN ({BLOCKED_BREAKERS}){{but}}
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
         WHERE id = ANY (ARRAY ({EXEMPT_FROM_WAVE})) AND phase || '' = 'ready' AND due_at <= (SELECT redrive_now())
           AND run_id IN (SELECT run_id FROM waved) AND run_id IN (SELECT id FROM active)
           AND (breaker_id IS NULL OR breaker_id NOT IN ({BLOCKED_BREAKERS})) AND {{wanted}}
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
   AND stopped_at IS NULL AND (phase = 'leased' OR {HEAD_MAY_BE_SENT})
 ORDER BY phase = 'leased' DESC, due_at, id LIMIT %(limit)b FOR UPDATE SKIP LOCKED"""  # noqa: S608  # as above
)

_LOCK = """
SELECT n.id AS lane_id FROM redrive_lane n
  JOIN unnest(%(lanes)b::bigint[], %(fences)b::bigint[]) AS m(lane_id, fence) ON m.lane_id = n.id
 WHERE m.fence IS NULL OR (n.fence = m.fence AND n.phase = 'leased')
 ORDER BY n.id FOR UPDATE OF n
"""

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

# OFFSET 0 makes the planner use an index for each source queue; else it may read all lanes.
_OF_KEY = """
SELECT n.id FROM redrive_source o CROSS JOIN LATERAL (
    SELECT id FROM redrive_lane WHERE dlq_id = o.dlq_id AND source_id = o.id AND key_hash = %(hash)b::bytea OFFSET 0) n
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
    """Lease and return up to `limit` due lanes of active runs, for `lease` seconds; lanes of killed workers come first.

    Locked lanes, and lanes of DLQs whose messages AWS may have moved, are left out. `owner`: name of the worker.
    `only`: lease only these lanes; None: any lane, except lanes whose first letter is sent through a circuit
    breaker in `but` (ids). `runs`: lease only lanes of these runs; None: of all runs.
    """
    values = {
        "owner": owner, "limit": limit, "lease": lease,
        "only": list(only or ()), "runs": None if runs is None else list(runs), "but": list(but),
    }  # fmt: skip
    return rows.fetch(LeasedLane, _LEASE if only is None else _LEASE_THESE, values)


def lock(lanes: Sequence[int], fences: Sequence[int | None]) -> set[int]:
    """Lock these lanes until the transaction ends, in the order of their ids; return the ids of the locked lanes.

    `fences`: for each lane, the fence of the caller's lease. If the caller has lost this lease, the lane is not locked.
    None: the caller has no lease, and the lane is locked in any case.
    """
    return set(rows.column(int, _LOCK, {"lanes": list(lanes), "fences": list(fences)}))


def renew(lanes: Sequence[int], fences: Sequence[int], *, lease: float) -> set[int]:
    """Renew leases for `lease` seconds; return the ids of the lanes that the caller still leases."""
    return set(rows.column(int, _RENEW, {"lanes": list(lanes), "fences": list(fences), "lease": lease}))


@dataclass(frozen=True, slots=True)
class HandedBack:
    """A leased lane to give back, so that any worker may lease it after `after` seconds.

    `why`: why the lane waits, as text for people. `breaker_id`: the circuit breaker of the lane's first letter; None:
    not known.
    """

    lane_id: int
    fence: int
    after: float = 0.0
    why: str = ""
    breaker_id: int | None = None


def hand_back(some: Sequence[HandedBack]) -> None:
    """Give leased lanes back, so that any worker may lease them. A lane whose lease the caller lost is not changed."""
    rows.execute(_HAND_BACK, rows.arrays(HandedBack, some))


def are_leased() -> bool:
    """Return whether any lane is leased, so that a worker is sending letters now."""
    return rows.value(bool, _ARE_LEASED, {})


def hint(*, limit: int, lifetime: float) -> list[int]:
    """Choose up to `limit` due lanes for task hints; return their ids. None is chosen again for `lifetime` seconds."""
    return rows.column(int, _HINT, {"limit": limit, "lifetime": lifetime})


def lanes_of_key(key: str) -> list[int]:
    """Return the ids of the lanes with an ordering key, at most one for each source queue."""
    return rows.column(int, _OF_KEY, {"hash": key_hash(key)})


def database_now() -> datetime:
    """Return the database's time (`redrive_now`), by which leases and deadlines are set."""
    return rows.value(datetime, "SELECT redrive_now() AS now", {})
