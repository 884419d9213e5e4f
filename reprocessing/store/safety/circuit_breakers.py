"""Open and close circuit breakers by the outcomes of attempts.

A repeated call changes nothing. If a process is killed before its call, a later call does the work. A canary is a
single letter that is sent to test the target after the cooldown.

Call these functions outside a transaction, after the commit that recorded outcomes. A row is written only if it has
not changed since it was read (compare and set).
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import assert_never

from reprocessing.domain.safety import circuit_breaker
from reprocessing.domain.safety.circuit_breaker import CloseBreaker, NextCanary, OpenBreaker, Policy
from reprocessing.models.safety import BreakerState
from reprocessing.store import rows
from reprocessing.store.notifications.breaker_events import OpenedBreaker, announce_opened, conclude_closed
from reprocessing.store.safety import breaker_window, rate_ramps
from reprocessing.store.safety.breaker_status import BREAKER_NAME
from reprocessing.store.safety.breaker_window import Window
from reprocessing.store.safety.outage_attempts import spare_epochs

logger = logging.getLogger(__name__)

#: Highest number of times that a call reads a breaker, if other processes change the breaker meanwhile.
_LOOKS = 3


@dataclass(frozen=True, slots=True)
class MovedBreaker:
    """A circuit breaker whose state was changed.

    `target`: the target's name, followed by the rate class if it has one.
    """

    breaker_id: int
    target: str
    before: str
    after: str
    why: str


_ROWS = f"""
SELECT b.id, {BREAKER_NAME} AS target, b.state, b.epoch, b.threshold, b.ratio, b.at_least, b.cooldown, b.cooldown_cap,
       b.canaries_to_close, b.current_cooldown, b.canary_until, b.successes
  FROM redrive_breaker b JOIN redrive_target t ON t.id = b.target_id
  LEFT JOIN redrive_rate_class c ON c.id = b.rate_class_id
 WHERE b.id = ANY(%(ids)b::bigint[]) AND b.state <> 'open'
 ORDER BY b.id
"""  # noqa: S608  # the inserted text is a constant

# A breaker is opened even if its `canary_until` has changed since it was read. Other changes are not made then.
_MOVE = """
WITH clock AS MATERIALIZED (SELECT redrive_now() AS now)
UPDATE redrive_breaker b
   SET state = m.state, epoch = b.epoch + (m.state <> b.state)::int,
       current_cooldown = m.cooldown, successes = m.successes,
       since = CASE WHEN m.state <> b.state THEN k.now ELSE b.since END, why = coalesce(m.why, b.why),
       retry_at = CASE WHEN m.state = 'open' THEN k.now + make_interval(secs => m.cooldown) END,
       canary_until = m.until,
       failing_since = CASE m.state WHEN 'open' THEN coalesce(b.failing_since, k.now)
                            WHEN 'half_open' THEN CASE WHEN m.successes = 0 THEN b.failing_since END END,
       ramp = CASE WHEN m.state = 'closed' THEN b.ramp_from ELSE b.ramp END,
       ramp_failure_ratio = CASE WHEN m.state = 'closed' THEN 0 ELSE b.ramp_failure_ratio END,
       ramp_at = CASE WHEN m.state = 'closed' THEN k.now ELSE b.ramp_at END,
       ramp_reason = CASE WHEN m.state = 'closed' THEN 'from its start: the breaker has closed' ELSE b.ramp_reason END
  FROM clock k,
       unnest(%(ids)b::bigint[], %(was)b::text[], %(epochs)b::bigint[], %(slots)b::timestamptz[],
              %(state)b::text[], %(cooldown)b::float8[], %(until)b::timestamptz[], %(successes)b::int[],
              %(why)b::text[]) AS m(id, was, epoch, slot, state, cooldown, until, successes, why)
 WHERE b.id = m.id AND b.state = m.was AND b.epoch = m.epoch
   AND (m.state = 'open' OR b.canary_until IS NOT DISTINCT FROM m.slot)
RETURNING b.id
"""


@dataclass(frozen=True, slots=True)
class _Row(Policy):
    id: int
    target: str
    state: str
    epoch: int
    current_cooldown: float
    canary_until: datetime | None
    successes: int


@dataclass(frozen=True, slots=True)
class _Move:
    """The next state of a breaker. `why`: the reason; None: keep the stored reason. `cooldown`: in seconds."""

    row: _Row
    state: BreakerState
    cooldown: float
    successes: int
    until: datetime | None = None
    why: str | None = None


def move_breakers(ids: Collection[int]) -> list[MovedBreaker]:
    """Open closed breakers after failures, and open or close half-open breakers after their canary.

    Return the breakers that were opened or closed.
    """
    moved: list[MovedBreaker] = []
    left = sorted(set(ids))
    for _ in range(_LOOKS):
        wanted = _needed_moves(left) if left else []
        done = _move(wanted) if wanted else set()
        moved += [_moved_breaker(move) for move in wanted if move.row.id in done and move.state != move.row.state]
        left = [move.row.id for move in wanted if move.row.id not in done]  # changed meanwhile: read them again
    return moved


def _needed_moves(ids: Sequence[int]) -> list[_Move]:
    found = rows.fetch(_Row, _ROWS, {"ids": list(ids)})
    if not found:
        return []
    sizes = [row.window for row in found]
    seen = breaker_window.windows([row.id for row in found], [row.epoch for row in found], sizes)
    moves = [
        (_move_after_canary if row.state == BreakerState.HALF_OPEN else _move_after_sends)(row, seen[row.id])
        for row in found
    ]
    return [move for move in moves if move is not None]


def _move_after_sends(row: _Row, seen: Window) -> _Move | None:
    why = circuit_breaker.why_breaker_opens(row, seen.sends)
    return _Move(row, BreakerState.OPEN, row.cooldown, 0, why=why) if why else None


def _move_after_canary(row: _Row, seen: Window) -> _Move | None:
    """Return the breaker's next state after a canary; None: no change.

    If `canary_until` is null, the canary was counted as a success already, and only a later failure matters.
    """
    if not seen.sent or (row.canary_until is None and not seen.failed):
        return None
    if seen.failed is None and not seen.closed:
        return _wait(row, seen.awaited_until)
    step = circuit_breaker.after_canary(row, seen.failed, successes=row.successes, last_cooldown=row.current_cooldown)
    match step:
        case OpenBreaker(cooldown, why):
            return _Move(row, BreakerState.OPEN, cooldown, 0, why=why)
        case CloseBreaker(why):
            return _Move(row, BreakerState.CLOSED, 0.0, 0, why=why)
        case NextCanary(successes):
            return _Move(row, BreakerState.HALF_OPEN, row.current_cooldown, successes)
        case _ as never:
            assert_never(never)


def _wait(row: _Row, awaited_until: datetime | None) -> _Move | None:
    """Delay the next canary until the outcome of a canary that the target accepted can be known. None: no change."""
    until = awaited_until and awaited_until + circuit_breaker.CANARY_OVERDUE
    if until is None or row.canary_until is None or row.canary_until >= until:
        return None
    return _Move(row, BreakerState.HALF_OPEN, row.current_cooldown, row.successes, until=until)


def _move(wanted: Sequence[_Move]) -> set[int]:
    values = {
        "ids": [move.row.id for move in wanted],
        "was": [move.row.state for move in wanted],
        "epochs": [move.row.epoch for move in wanted],
        "slots": [move.row.canary_until for move in wanted],
        **rows.arrays(_Move, wanted),
    }

    def move_all() -> set[int]:
        moved = set(rows.column(int, _MOVE, values))
        _apply_effects([move for move in wanted if move.row.id in moved])
        return moved

    return rows.in_transaction(move_all) if any(move.state != move.row.state for move in wanted) else move_all()


def _apply_effects(moved: Sequence[_Move]) -> None:
    """After breakers were opened or closed, mark attempts as `spared` (not counted), and open or end incidents.

    Call it in the transaction that moved the breakers.
    """
    opened = [move for move in moved if move.state == BreakerState.OPEN]
    spare_epochs({(move.row.id, move.row.epoch) for move in opened})
    announce_opened([OpenedBreaker(move.row.id, move.row.target, move.why or "", move.cooldown) for move in opened])
    conclude_closed([move.row.id for move in moved if move.state == BreakerState.CLOSED])


def open_after(failures: Collection[tuple[int, int]], *, why: str) -> list[MovedBreaker]:
    """Open circuit breakers because a wave failed, or because a message used up its attempts; return these breakers.

    `failures`: pairs of a breaker's id, and the epoch in which attempts failed. An epoch begins when the breaker
    changes its state. A breaker that has another epoch by now is skipped, because it was already opened or tested.
    """
    found = rows.fetch(_Row, _ROWS, {"ids": sorted({breaker_id for breaker_id, _ in failures})})
    wanted = [
        _Move(row, BreakerState.OPEN, circuit_breaker.next_cooldown(row, row.current_cooldown), 0, why=why)
        for row in found
        if (row.id, row.epoch) in failures
    ]
    done = _move(wanted) if wanted else set()
    return [_moved_breaker(move) for move in wanted if move.row.id in done]


def _moved_breaker(move: _Move) -> MovedBreaker:
    row = move.row
    if move.state == BreakerState.OPEN:
        opened = "The circuit breaker of %s opened: %s. Nothing is sent there for %g s."
        logger.warning(opened, row.target, move.why, move.cooldown, extra={"target": row.target})
    else:
        logger.info(
            "The circuit breaker of %s closed: %s. Its rate ramps up.",
            row.target,
            move.why,
            extra={"target": row.target},
        )
    return MovedBreaker(row.id, row.target, row.state, move.state.value, move.why or "")


def move_all_breakers() -> list[MovedBreaker]:
    """Call `move_breakers` for all breakers, and reset idle ramp-ups; return the breakers that were opened or closed.

    This does the work of workers that were killed before they called `move_breakers`.
    """
    rate_ramps.reset_idle_ramps()
    return move_breakers(rows.column(int, "SELECT id FROM redrive_breaker WHERE state <> 'open' ORDER BY id", {}))
