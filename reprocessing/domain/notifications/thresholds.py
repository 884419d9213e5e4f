"""Define the thresholds for notifications, which are the same for every DLQ and destination."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """The thresholds above which people are notified of a condition.

    Attributes:
        parked_count: people are notified when more messages than this of one DLQ are parked.
        parked_age: people are notified when a message of a DLQ is parked for longer than this.
        expires_within: people are notified when SQS will delete an uncaptured message of a DLQ within this time.
        growing_for: people are notified when a DLQ grows for longer than this.
        silent_for: people are notified when beat, or all workers of a queue, do nothing for longer than this.
        stalled_for: people are notified when a running run makes no progress for longer than this.
    """

    parked_count: int = 100
    parked_age: timedelta = timedelta(days=1)
    expires_within: timedelta = timedelta(days=1)
    growing_for: timedelta = timedelta(hours=1)
    silent_for: timedelta = timedelta(minutes=2)
    stalled_for: timedelta = timedelta(minutes=30)
