"""Decide whether Celery beat or the workers have stopped, without comparing clocks of different hosts.

A tick is a task that beat sends every 2 s. Beat counts its ticks in PostgreSQL, and a worker records there when it
consumed a tick. A watcher is a process that reads both values every few seconds, and adds up the time in which a value
did not change. A watcher that has just started reports nothing, so a restart of the whole service raises no alarm.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Signs:
    """The signs of life in PostgreSQL: how many ticks beat has counted, and when a worker last consumed a tick.

    `ticks` is None if beat never counted a tick. `consumed_at` is None if no worker ever consumed a tick.
    """

    ticks: int | None
    consumed_at: datetime | None


@dataclass(frozen=True, slots=True)
class Watched:
    """What one watcher has observed so far.

    Attributes:
        signs: the newest signs.
        beat_silent: seconds since beat last counted a tick; None: beat has counted none since the watch began.
        workers_silent: seconds since a worker last consumed a tick; None: none was consumed since the watch began.
        watched: seconds since the watch began, without the time in which the host was suspended.
    """

    signs: Signs
    beat_silent: float | None = None
    workers_silent: float | None = None
    watched: float = 0.0


@dataclass(frozen=True, slots=True)
class Silence:
    """Whether beat is silent (sends no ticks), and whether the workers are silent (consume none). None: not known."""

    beat: bool | None
    workers: bool | None


def watch(before: Watched | None, signs: Signs, *, elapsed: float, longest: float) -> Watched:
    """Return the observations of a watcher after it has read `signs`. `before` is None at the first reading.

    `elapsed`: seconds since the last reading. At most `longest` seconds count, because the host may have been suspended
    in between.
    """
    if before is None:
        return Watched(signs)
    step = min(elapsed, longest)
    consumed = signs.consumed_at != before.signs.consumed_at
    ticked = signs.ticks != before.signs.ticks or consumed
    return Watched(
        signs,
        0.0 if ticked else _longer(before.beat_silent, step),
        0.0 if consumed else _longer(before.workers_silent, step),
        before.watched + step,
    )


def silence(watched: Watched, *, silent_for: float) -> Silence:
    """Return whether beat was silent, and whether the workers were silent, for `silent_for` seconds.

    While beat is silent, the answer for the workers is None: they get no ticks to consume.
    """
    beat = _is_silent(watched.beat_silent, watched.watched, silent_for)
    workers = None if beat else _is_silent(watched.workers_silent, watched.watched, silent_for)
    return Silence(beat, workers if workers is False or beat is False else None)


def _longer(silent: float | None, step: float) -> float | None:
    return None if silent is None else silent + step


def _is_silent(silent: float | None, watched: float, silent_for: float) -> bool | None:
    """Return whether a value did not change for `silent_for` seconds; None: not known yet.

    `silent`: seconds since the value last changed; None: it did not change in the `watched` seconds of the watch.
    """
    if silent is None:
        return True if watched >= silent_for else None
    return silent >= silent_for
