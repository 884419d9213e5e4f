"""Breakers, moved by what the attempts say. Each call is harmless when it is doubled, or lost.

Called after the commit that recorded outcomes, and outside any transaction: what it reads is what is written by then,
and a row is moved only where nobody has moved it since (compare and set).
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import assert_never

from reprocessing.domain.safety import circuit_breaker
from reprocessing.domain.safety.circuit_breaker import Closes, Frees, Opens, Policy
from reprocessing.models.safety import BreakerState
from reprocessing.store import rows
from reprocessing.store.notifications.breaker_events import OpenedBreaker, announce_opened, conclude_closed
from reprocessing.store.safety import breaker_window, rate_ramps
from reprocessing.store.safety.breaker_status import NAME
from reprocessing.store.safety.breaker_window import Window
from reprocessing.store.safety.spared_attempts import spare_epochs

logger = logging.getLogger(__name__)

#: Looks at a breaker that others move at the same time.
_LOOKS = 3


@dataclass(frozen=True, slots=True)
class Moved:
    """A breaker that this call has moved; `target` is its name, with that of the class of letters where it has one."""

    breaker_id: int
    target: str
    before: str
    after: str
    why: str


_ROWS = f"""
SELECT b.id, {NAME} AS target, b.state, b.epoch, b.threshold, b.ratio, b.at_least, b.cooldown, b.cooldown_cap,
       b.closes_after, b.rest, b.canary_until, b.successes
  FROM redrive_breaker b JOIN redrive_target t ON t.id = b.target_id
  LEFT JOIN redrive_rate_class c ON c.id = b.rate_class_id
 WHERE b.id = ANY(%(ids)b::bigint[]) AND b.state <> 'open'
 ORDER BY b.id
"""  # noqa: S608  # the inserted text is a constant

# A failure counts whatever became of the canary's slot meanwhile; the rest, as long as the slot is as it was seen.
_MOVE = """
WITH clock AS MATERIALIZED (SELECT redrive_now() AS now)
UPDATE redrive_breaker b
   SET state = m.state, epoch = b.epoch + (m.state <> b.state)::int, rest = m.rest, successes = m.successes,
       since = CASE WHEN m.state <> b.state THEN k.now ELSE b.since END, why = coalesce(m.why, b.why),
       retry_at = CASE WHEN m.state = 'open' THEN k.now + make_interval(secs => m.rest) END,
       canary_until = m.until,
       failing_since = CASE m.state WHEN 'open' THEN coalesce(b.failing_since, k.now)
                            WHEN 'half_open' THEN CASE WHEN m.successes = 0 THEN b.failing_since END END,
       ramp = CASE WHEN m.state = 'closed' THEN b.ramp_from ELSE b.ramp END,
       ramp_ill = CASE WHEN m.state = 'closed' THEN 0 ELSE b.ramp_ill END,
       ramp_at = CASE WHEN m.state = 'closed' THEN k.now ELSE b.ramp_at END,
       ramp_why = CASE WHEN m.state = 'closed' THEN 'from its start: the breaker has closed' ELSE b.ramp_why END
  FROM clock k,
       unnest(%(ids)b::bigint[], %(was)b::text[], %(epochs)b::bigint[], %(slots)b::timestamptz[],
              %(states)b::text[], %(rests)b::float8[], %(untils)b::timestamptz[], %(successes)b::int[],
              %(whys)b::text[])
       AS m(id, was, epoch, slot, state, rest, until, successes, why)
 WHERE b.id = m.id AND b.state = m.was AND b.epoch = m.epoch
   AND (m.state = 'open' OR b.canary_until IS NOT DISTINCT FROM m.slot)
RETURNING b.id
"""

_WATCHED = "SELECT id FROM redrive_breaker WHERE state <> 'open' ORDER BY id"


@dataclass(frozen=True, slots=True)
class _Row:
    id: int
    target: str
    state: str
    epoch: int
    threshold: int
    ratio: float
    at_least: int
    cooldown: float
    cooldown_cap: float
    closes_after: int
    rest: float
    canary_until: datetime | None
    successes: int

    @property
    def policy(self) -> Policy:
        return Policy(
            threshold=self.threshold, ratio=self.ratio, at_least=self.at_least, cooldown=self.cooldown,
            cooldown_cap=self.cooldown_cap, closes_after=self.closes_after,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Move:
    """What a row is to become. `why` None: what it says stays; `rest` seconds."""

    row: _Row
    state: BreakerState
    rest: float
    successes: int
    until: datetime | None = None
    why: str | None = None


def look(ids: Collection[int]) -> list[Moved]:
    """Open closed breakers whose letters fail, and let the canaries of half-open ones decide. Three statements at most.

    Of a closed breaker only failures matter, of a half-open one every outcome of its canary; an open one is left alone.

    Returns:
        Those that this call opened or closed.
    """
    moved: list[Moved] = []
    left = sorted(set(ids))
    for _ in range(_LOOKS):
        wanted = _wanted(left) if left else []
        done = _move(wanted) if wanted else set()
        moved += [_told(one) for one in wanted if one.row.id in done and one.state != one.row.state]
        left = [one.row.id for one in wanted if one.row.id not in done]  # somebody was quicker: what do they show now?
    return moved


def _wanted(ids: Sequence[int]) -> list[_Move]:
    found = rows.fetch(_Row, _ROWS, {"ids": list(ids)})
    if not found:
        return []
    seen = breaker_window.windows(
        [one.id for one in found], [one.epoch for one in found], [one.policy.window for one in found]
    )
    moves = [
        _of_canary(one, seen[one.id]) if one.state == BreakerState.HALF_OPEN else _of_sends(one, seen[one.id])
        for one in found
    ]
    return [one for one in moves if one is not None]


def _of_sends(row: _Row, seen: Window) -> _Move | None:
    why = circuit_breaker.opens(row.policy, seen.sends)
    return _Move(row, BreakerState.OPEN, row.cooldown, 0, why=why) if why else None


def _of_canary(row: _Row, seen: Window) -> _Move | None:
    """A canary whose slot is free has been counted; only its failure is news, since it may come back late."""
    if not seen.sent or (row.canary_until is None and not seen.failed):
        return None
    if seen.failed is None and not seen.closed:
        return _wait(row, seen.awaited_until)
    step = circuit_breaker.after_canary(row.policy, seen.failed, successes=row.successes, rest=row.rest)
    match step:
        case Opens(rest, why):
            return _Move(row, BreakerState.OPEN, rest, 0, why=why)
        case Closes(why):
            return _Move(row, BreakerState.CLOSED, 0.0, 0, why=why)
        case Frees(successes):
            return _Move(row, BreakerState.HALF_OPEN, row.rest, successes)
        case _ as never:
            assert_never(never)


def _wait(row: _Row, awaited_until: datetime | None) -> _Move | None:
    """The slot of a canary that was taken is kept until its outcome can be known."""
    until = awaited_until and awaited_until + circuit_breaker.PATIENCE
    if until is None or row.canary_until is None or row.canary_until >= until:
        return None
    return _Move(row, BreakerState.HALF_OPEN, row.rest, row.successes, until=until)


def _move(wanted: Sequence[_Move]) -> set[int]:
    values = {
        "ids": [one.row.id for one in wanted],
        "was": [one.row.state for one in wanted],
        "epochs": [one.row.epoch for one in wanted],
        "slots": [one.row.canary_until for one in wanted],
        "states": [one.state.value for one in wanted],
        "rests": [one.rest for one in wanted],
        "untils": [one.until for one in wanted],
        "successes": [one.successes for one in wanted],
        "whys": [one.why for one in wanted],
    }

    def move() -> set[int]:
        moved = set(rows.column(int, _MOVE, values))
        _follow([one for one in wanted if one.row.id in moved])
        return moved

    return rows.whole(move) if any(one.state != one.row.state for one in wanted) else move()


def _follow(moved: Sequence[_Move]) -> None:
    """Do what follows from breakers that opened or closed, in the transaction that moved them."""
    opened = [one for one in moved if one.state == BreakerState.OPEN]
    spare_epochs({(one.row.id, one.row.epoch) for one in opened})
    announce_opened([OpenedBreaker(one.row.id, one.row.target, one.why or "", one.rest) for one in opened])
    conclude_closed([one.row.id for one in moved if one.state == BreakerState.CLOSED])


def open_after(failures: Collection[tuple[int, int]], *, why: str) -> list[Moved]:
    """Open breakers over what attempts in a row do not show: a wave that failed, a message that used up its attempts.

    Args:
        failures: breakers that are not open, each with the epoch in which the failed attempts were sent; one that has
            been moved since is left alone.
        why: what failed.
    """
    found = rows.fetch(_Row, _ROWS, {"ids": sorted({breaker_id for breaker_id, _ in failures})})
    wanted = [
        _Move(one, BreakerState.OPEN, circuit_breaker.next_rest(one.policy, one.rest), 0, why=why)
        for one in found
        if (one.id, one.epoch) in failures
    ]
    done = _move(wanted) if wanted else set()
    return [_told(one) for one in wanted if one.row.id in done]


def _told(one: _Move) -> Moved:
    row = one.row
    if one.state == BreakerState.OPEN:
        logger.warning("The breaker of %s opened: %s. Nothing goes there for %g s.", row.target, one.why, one.rest)
    else:
        logger.info("The breaker of %s closed: %s. Its rate ramps up.", row.target, one.why)
    return Moved(row.id, row.target, row.state, one.state.value, one.why or "")


def sweep() -> list[Moved]:
    """Look where a worker may have died between recording outcomes and looking; those that were opened or closed.

    Ramps of which nothing is known any more go back to their start.
    """
    rate_ramps.after_rest()
    return look(rows.column(int, _WATCHED, {}))
