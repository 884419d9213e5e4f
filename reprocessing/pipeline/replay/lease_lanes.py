"""Take due lanes, and close what those who died over them left open."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import timedelta

from reprocessing.pipeline.replay import after_settlement
from reprocessing.store import rows
from reprocessing.store.ordering import lanes, orphaned_lanes
from reprocessing.store.ordering.lanes import Leased, Standing


def due(  # noqa: PLR0913  # each by its name
    owner: str, *, room: int, lease: timedelta, only: Sequence[int] | None, runs: Sequence[int] | None,
    but: Collection[int], strictly: bool,
) -> list[Standing]:  # fmt: skip
    """Lease due lanes for their new owner, and return where they stand: those of `only`, else, unless `strictly`, any.

    Lease and heads are one transaction: the lease locks the lanes, and the heads are asked for in a later statement.
    What dead owners left open is closed first, in a transaction of its own.

    Args:
        owner: names the worker and the turn.
        room: lanes at most.
        lease: how long they are the owner's.
        only: lanes; None: any.
        runs: lanes of these runs alone; None: of any.
        but: breakers by which nothing goes now; of any lanes, those are left out.
        strictly: none but those of `only`.
    """
    seconds = lease.total_seconds()

    def work() -> tuple[list[Leased], list[Standing]]:
        leased: list[Leased] = []
        if only:
            leased = lanes.lease(owner, limit=room, lease=seconds, only=only, runs=runs)
        if not leased and not strictly:
            leased = lanes.lease(owner, limit=room, lease=seconds, runs=runs, but=but)
        return leased, _advance([one for one in leased if not one.inherited], lease=seconds)

    leased, standings = rows.whole(work)
    if inherited := [one for one in leased if one.inherited]:
        _close(owner, inherited)
        standings += heads(inherited, lease=lease)
    return standings


def heads(some: Sequence[Leased] | Sequence[Standing], *, lease: timedelta) -> list[Standing]:
    """Where these lanes, leased by the caller, stand: those with a head that is due stay leased, from now on anew.

    They are locked first, by a statement of its own. One that waited for somebody who gives such a lane a letter would
    not see that letter, and the lane would be idle for ever.
    """
    ids, fences = [one.lane_id for one in some], [one.fence for one in some]

    def work() -> list[Standing]:
        lanes.lock(ids, fences)
        return lanes.advance(ids, fences, keep=True, lease=lease.total_seconds())

    return rows.whole(work) if ids else []


def _advance(leased: Sequence[Leased], *, lease: float) -> list[Standing]:
    if not leased:
        return []
    return lanes.advance([one.lane_id for one in leased], [one.fence for one in leased], keep=True, lease=lease)


def _close(owner: str, inherited: Sequence[Leased]) -> None:
    def work() -> list[orphaned_lanes.Left]:
        lanes.lock([one.lane_id for one in inherited], [one.fence for one in inherited])
        return orphaned_lanes.close(owner, [one.lane_id for one in inherited])

    left = rows.whole(work)
    after_settlement.outcomes(of_breakers=[one.breaker_id for one in left], of_runs=[one.run_id for one in left])
