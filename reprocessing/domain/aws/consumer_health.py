"""Decide from a queue's metrics whether the queue's consumers keep up.

If the age of the oldest message grows, consumers are behind. If the number of messages in flight grows, consumers are
slow, or crash. If all sent messages were received, but fewer were deleted, consumers fail. At least 6 values are needed
to decide whether a number grows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Final, TypeAlias

#: Min values for a trend. A trend compares the first third of the values with the last third.
LEAST_VALUES: Final = 6
#: A value grows if it rose by at least 60 s (age) or 10 messages (in flight), and by 25 % of its earlier value.
_AGE_RISE, _FLIGHT_RISE, _SHARE = 60.0, 10.0, 0.25
#: A value counts as growing only if at least this share of its changes are increases.
_UPWARD: Final = 0.75
#: Consumers count as failing only if more than this share of the messages was not deleted, because CloudWatch may miss
#: some late deletions.
_MISSING: Final = 0.05


@dataclass(frozen=True, slots=True)
class QueueMetrics:
    """CloudWatch's values of a queue in periods of equal length, the oldest first.

    Each field has one value for each period. `age`: the highest age of the oldest message, in seconds. `in_flight`: the
    highest number of messages in flight. The other fields: how many messages were sent, received and deleted.
    """

    age: Sequence[float] = ()
    in_flight: Sequence[float] = ()
    sent: Sequence[float] = ()
    received: Sequence[float] = ()
    deleted: Sequence[float] = ()


@dataclass(frozen=True, slots=True)
class KeepingUp:
    """The queue's metrics show that its consumers keep up."""


@dataclass(frozen=True, slots=True)
class FallingBehind:
    """The age of the oldest message grows, from `before` to `now` seconds."""

    before: float
    now: float


@dataclass(frozen=True, slots=True)
class SlowOrCrashing:
    """The number of messages in flight grows, from `before` to `now`."""

    before: float
    now: float


@dataclass(frozen=True, slots=True)
class FailingConsumers:
    """All sent messages were received, but fewer were deleted. The fields are numbers of messages."""

    sent: float
    received: float
    deleted: float


@dataclass(frozen=True, slots=True)
class TooFewValues:
    """CloudWatch has too few values of the queue's metrics to decide whether its consumers keep up."""

    why: str


ConsumerHealth: TypeAlias = KeepingUp | FallingBehind | SlowOrCrashing | FailingConsumers | TooFewValues


def judge_consumers(of: QueueMetrics) -> tuple[ConsumerHealth, ...]:
    """Return every problem that a queue's metrics show. If they show none, return a `KeepingUp` or `TooFewValues`."""
    found: list[ConsumerHealth] = []
    if rise := _rise(of.age, _AGE_RISE):
        found.append(FallingBehind(*rise))
    if rise := _rise(of.in_flight, _FLIGHT_RISE):
        found.append(SlowOrCrashing(*rise))
    if failing := _failing(of):
        found.append(failing)
    if found:
        return tuple(found)
    trends = {"age of the oldest message": of.age, "messages in flight": of.in_flight}
    few = [name for name, values in trends.items() if len(values) < LEAST_VALUES]
    if few or not of.received:
        missing = " and ".join(few) or "received messages"
        return (TooFewValues(f"CloudWatch has too few values ({missing}), because the queue was hardly used lately"),)
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
    """Return `FailingConsumers` if all messages were received, but too few were deleted; else None.

    Messages in flight do not count as failed, because their consumer may still delete them.
    """
    sent, received, deleted = sum(of.sent), sum(of.received), sum(of.deleted)
    in_flight = of.in_flight[-1] if of.in_flight else 0.0
    due = sent or (received if not deleted else 0.0)
    if received >= due > 0 and due - deleted - in_flight > max(_MISSING * due, 1.0):
        return FailingConsumers(sent, received, deleted)
    return None
