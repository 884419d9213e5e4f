"""Define the thresholds for notifications, which are the same for every DLQ and destination."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """The thresholds above which people are notified of a condition.

    Attributes:
        parked_count, parked_age: number of parked messages of one DLQ, and for how long the oldest has been parked.
        expires_within: time until SQS deletes an uncaptured message; people are notified below this threshold.
        growing_for: time for which a DLQ must have grown.
        silent_for: time for which beat, or all workers of a queue, must have done nothing.
        stalled_for: time for which a running run must have made no progress.
    """

    parked_count: int = 100
    parked_age: timedelta = timedelta(days=1)
    expires_within: timedelta = timedelta(days=1)
    growing_for: timedelta = timedelta(hours=1)
    silent_for: timedelta = timedelta(minutes=2)
    stalled_for: timedelta = timedelta(minutes=30)
