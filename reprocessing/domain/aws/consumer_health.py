"""The golden rule of queues: what their metrics say of whoever consumes them.

An age of the oldest message that grows: consumers fall behind. Messages in flight that grow: they work, and take too
long, or crash. As much received as was sent, and less deleted: they fail. What has too few values is unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Final, TypeAlias

#: Values that a trend takes; it is told from the first third of them to the last.
LEAST: Final = 6
#: By how much, and by what share of what it was, something has to rise to be called growing.
_AGE_RISE, _FLIGHT_RISE, _SHARE = 60.0, 10.0, 0.25
#: Of all steps that go up or down, the share that has to go up: what swings is not growing.
_UPWARD: Final = 0.75
#: The share of what was sent that may be missing among what was deleted: metrics come late.
_MISSING: Final = 0.05


@dataclass(frozen=True, slots=True)
class Series:
    """What CloudWatch has of a queue, in periods of one length, the oldest first.

    Attributes:
        age: seconds of the oldest message, the most of each period.
        in_flight: messages, the most of each period.
        sent, received, deleted: messages, the sum of each period.
    """

    age: Sequence[float] = ()
    in_flight: Sequence[float] = ()
    sent: Sequence[float] = ()
    received: Sequence[float] = ()
    deleted: Sequence[float] = ()


@dataclass(frozen=True, slots=True)
class Keeping:
    """Consumers keep up with it, as far as the metrics tell."""


@dataclass(frozen=True, slots=True)
class Behind:
    """The oldest message gets older: seconds before, seconds now."""

    before: float
    now: float


@dataclass(frozen=True, slots=True)
class Slow:
    """More and more messages are in flight: so many before, so many now."""

    before: float
    now: float


@dataclass(frozen=True, slots=True)
class Failing:
    """All that was sent was received, and less of it deleted."""

    sent: float
    received: float
    deleted: float


@dataclass(frozen=True, slots=True)
class Untold:
    """The metrics are too few to tell."""

    why: str


Vital: TypeAlias = Keeping | Behind | Slow | Failing | Untold


def vitals(of: Series) -> tuple[Vital, ...]:
    """What a queue's metrics say: everything that is not well, else that it is, or that nothing is known."""
    found: list[Vital] = []
    if (rise := _rise(of.age, _AGE_RISE)) is not None:
        found.append(Behind(*rise))
    if (rise := _rise(of.in_flight, _FLIGHT_RISE)) is not None:
        found.append(Slow(*rise))
    if (failing := _failing(of)) is not None:
        found.append(failing)
    if found:
        return tuple(found)
    few = [name for name, values in (("age", of.age), ("messages in flight", of.in_flight)) if len(values) < LEAST]
    if few or not of.received:
        missing = " and ".join(few) or "receives"
        return (Untold(f"CloudWatch has too few values of its {missing}: nobody has used it of late"),)
    return (Keeping(),)


def _rise(values: Sequence[float], least: float) -> tuple[float, float] | None:
    """What it was and what it is, where it grows."""
    if len(values) < LEAST:
        return None
    third = len(values) // 3
    before, now = median(values[:third]), median(values[-third:])
    steps = [later - earlier for earlier, later in pairwise(values) if later != earlier]
    if now - before < max(least, _SHARE * before) or sum(step > 0 for step in steps) < _UPWARD * len(steps):
        return None
    return before, now


def _failing(of: Series) -> Failing | None:
    """What is in flight may be deleted yet; where nothing was sent, whoever receives and deletes nothing fails."""
    sent, received, deleted = sum(of.sent), sum(of.received), sum(of.deleted)
    open_yet = of.in_flight[-1] if of.in_flight else 0.0
    due = sent or (received if not deleted else 0.0)
    if received >= due > 0 and due - deleted - open_yet > max(_MISSING * due, 1.0):
        return Failing(sent, received, deleted)
    return None
