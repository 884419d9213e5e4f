"""Interpret the metrics of a queue: do its consumers keep up?

A growing age of the oldest message: they are behind. Growing messages in flight: they are slow, or crash. All that was
sent was received, but less was deleted: they fail. Too few values: unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Final, TypeAlias

#: Least values of a trend, which compares the first third with the last.
LEAST_VALUES: Final = 6
#: Least rise of the age in seconds, of messages in flight, and as a share of the earlier value.
_AGE_RISE, _FLIGHT_RISE, _SHARE = 60.0, 10.0, 0.25
#: Least share of upward steps among all changes: a value that swings does not grow.
_UPWARD: Final = 0.75
#: Share of the sent messages that may be missing among the deleted ones, because metrics are late.
_MISSING: Final = 0.05


@dataclass(frozen=True, slots=True)
class QueueMetrics:
    """CloudWatch's values of a queue in periods of one length, the oldest first.

    `age`: maximum seconds of the oldest message; `in_flight`: maximum messages; the others: sums of messages.
    """

    age: Sequence[float] = ()
    in_flight: Sequence[float] = ()
    sent: Sequence[float] = ()
    received: Sequence[float] = ()
    deleted: Sequence[float] = ()


@dataclass(frozen=True, slots=True)
class KeepingUp:
    """The consumers keep up."""


@dataclass(frozen=True, slots=True)
class FallingBehind:
    """The age of the oldest message in seconds grows."""

    before: float
    now: float


@dataclass(frozen=True, slots=True)
class SlowOrCrashing:
    """The number of messages in flight grows."""

    before: float
    now: float


@dataclass(frozen=True, slots=True)
class FailingConsumers:
    """All that was sent was received, but less was deleted."""

    sent: float
    received: float
    deleted: float


@dataclass(frozen=True, slots=True)
class TooFewValues:
    """There are too few values."""

    why: str


ConsumerHealth: TypeAlias = KeepingUp | FallingBehind | SlowOrCrashing | FailingConsumers | TooFewValues


def judge_consumers(of: QueueMetrics) -> tuple[ConsumerHealth, ...]:
    """Return all problems that a queue's metrics show; else that there is none, or that it is not known."""
    found: list[ConsumerHealth] = []
    if (rise := _rise(of.age, _AGE_RISE)) is not None:
        found.append(FallingBehind(*rise))
    if (rise := _rise(of.in_flight, _FLIGHT_RISE)) is not None:
        found.append(SlowOrCrashing(*rise))
    if (failing := _failing(of)) is not None:
        found.append(failing)
    if found:
        return tuple(found)
    few = [
        name for name, values in (("age", of.age), ("messages in flight", of.in_flight)) if len(values) < LEAST_VALUES
    ]
    if few or not of.received:
        missing = " and ".join(few) or "receives"
        return (TooFewValues(f"CloudWatch has too few values of its {missing}: it was not used lately"),)
    return (KeepingUp(),)


def _rise(values: Sequence[float], least: float) -> tuple[float, float] | None:
    if len(values) < LEAST_VALUES:
        return None
    third = len(values) // 3
    before, now = median(values[:third]), median(values[-third:])
    steps = [later - earlier for earlier, later in pairwise(values) if later != earlier]
    if now - before < max(least, _SHARE * before) or sum(step > 0 for step in steps) < _UPWARD * len(steps):
        return None
    return before, now


def _failing(of: QueueMetrics) -> FailingConsumers | None:
    """Messages in flight may still be deleted. If nothing was sent, receiving without any deletion is a failure."""
    sent, received, deleted = sum(of.sent), sum(of.received), sum(of.deleted)
    open_yet = of.in_flight[-1] if of.in_flight else 0.0
    due = sent or (received if not deleted else 0.0)
    if received >= due > 0 and due - deleted - open_yet > max(_MISSING * due, 1.0):
        return FailingConsumers(sent, received, deleted)
    return None
