"""Thresholds from which people are notified of a condition; the same for every DLQ and destination."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """When people are notified.

    Attributes:
        parked_count: people are notified of more parked messages of one DLQ than these.
        parked_age: people are notified if the oldest parked message of a DLQ has waited for longer.
        expires_within: how soon SQS deletes the first message that is not captured.
        growing_for: for how long more messages arrived in a DLQ than left it.
        silent_for: how long beat, or the workers of one of the service's queues, gave no sign of life.
        stalled_for: how long a running run did not progress.
    """

    parked_count: int = 100
    parked_age: timedelta = timedelta(days=1)
    expires_within: timedelta = timedelta(days=1)
    growing_for: timedelta = timedelta(hours=1)
    silent_for: timedelta = timedelta(minutes=2)
    stalled_for: timedelta = timedelta(minutes=30)
