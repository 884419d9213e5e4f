"""Lease due lanes, and close the attempts that killed workers left open."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import timedelta

from reprocessing.pipeline.replay import after_settlement
from reprocessing.store import rows
from reprocessing.store.ordering import lane_state, lanes, orphaned_lanes
from reprocessing.store.ordering.lane_state import LaneState
from reprocessing.store.ordering.lanes import LeasedLane


def lease_due(  # noqa: PLR0913  # arguments are passed by name
    owner: str, *, room: int, lease: timedelta, only: Sequence[int] | None, runs: Sequence[int] | None,
    but: Collection[int], strictly: bool,
) -> list[LaneState]:  # fmt: skip
    """Lease up to `room` due lanes; return the lanes with their heads (first unfinished letters).

    A lane is due if it does not wait any more, such as for the end of a backoff. One transaction leases the lanes and
    finds their heads. Another transaction closes attempts that killed workers left open.

    Args:
        owner: name of the slice that leases.
        room: highest number of lanes.
        lease: length of the leases.
        only: ids of lanes that are leased first; other lanes are leased only if none of these is due. None: any lanes.
        runs: only lanes of these runs (ids); None: lanes of all runs.
        but: ids of circuit breakers; a lane whose head has one of these breakers is leased only if it is in `only`.
        strictly: lease no lanes outside `only`.
    """
    seconds = lease.total_seconds()

    def work() -> tuple[list[LeasedLane], list[LaneState]]:
        leased: list[LeasedLane] = []
        if only:
            leased = lanes.lease(owner, limit=room, lease=seconds, only=only, runs=runs)
        if not leased and not strictly:
            leased = lanes.lease(owner, limit=room, lease=seconds, runs=runs, but=but)
        own = [lane for lane in leased if not lane.inherited]
        ids, fences = [lane.lane_id for lane in own], [lane.fence for lane in own]
        return leased, lane_state.advance(ids, fences, keep=True, lease=seconds) if own else []

    leased, lane_states = rows.in_transaction(work)
    if inherited := [lane for lane in leased if lane.inherited]:
        _close(owner, inherited)
        lane_states += find_heads(inherited, lease=lease)
    return lane_states


def find_heads(some: Sequence[LeasedLane] | Sequence[LaneState], *, lease: timedelta) -> list[LaneState]:
    """Return lanes that the caller has leased, with their heads. Lanes with a due head stay leased; others are freed.

    A lane's head is its first unfinished letter. It is due if it does not wait any more, such as for the end of a
    backoff. Two statements are needed, of which the first locks the lanes. A single statement would not see a letter
    that another transaction added while the statement waited for the lock, and the lane would stay idle.
    """
    ids, fences = [lane.lane_id for lane in some], [lane.fence for lane in some]

    def work() -> list[LaneState]:
        lanes.lock(ids, fences)
        return lane_state.advance(ids, fences, keep=True, lease=lease.total_seconds())

    return rows.in_transaction(work) if ids else []


def _close(owner: str, inherited: Sequence[LeasedLane]) -> None:
    def work() -> list[orphaned_lanes.OrphanedAttempt]:
        lanes.lock([lane.lane_id for lane in inherited], [lane.fence for lane in inherited])
        return orphaned_lanes.close_attempts(owner, [lane.lane_id for lane in inherited])

    left = rows.in_transaction(work)
    after_settlement.update_after_attempts(left)
