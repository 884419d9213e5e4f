"""Say in words when SQS begins to drop the messages of a DLQ."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from reprocessing.domain.notifications.text import duration

_SOON: Final = 86_400  #: the risk is `SOON` if SQS drops a message within this many seconds


class RiskLevel(StrEnum):
    """How soon SQS drops messages of a DLQ. The most urgent level comes first."""

    NOW = "now"
    SOON = "soon"
    LATER = "later"
    UNKNOWN = "unknown"
    NONE = "none"  #: the DLQ has no messages


@dataclass(frozen=True, slots=True)
class Risk:
    """When SQS drops messages of a DLQ. `left`: seconds until the first message is dropped; None: not known."""

    level: RiskLevel
    words: str
    left: float | None = None

    @property
    def rank(self) -> tuple[int, float]:
        """Return a sort key, by which the most urgent risk comes first."""
        return list(RiskLevel).index(self.level), self.left or 0.0


def expiry_risk(*, messages: int | None, retention: int | None, oldest_age: float | None, fifo: bool) -> Risk:
    """Return when SQS begins to drop messages of a DLQ: a level of urgency, the time in words, and in seconds.

    CloudWatch measures the age of a message from its arrival in the DLQ. In a standard DLQ, retention began earlier,
    when the message was first sent to its source queue. So SQS may drop the message before the returned time. In a FIFO
    DLQ, the time is exact (AWS, SQS developer guide, "Configuring message retention for dead-letter queues").

    Args:
        messages: number of messages, visible and in flight; None: not known.
        retention: seconds for which the DLQ keeps a message; None: not known.
        oldest_age: age of the oldest message in seconds; None: not known.
        fifo: whether the DLQ is FIFO.
    """
    if messages is None or retention is None:
        return Risk(RiskLevel.UNKNOWN, "not known, because the queue could not be read")
    if messages == 0:
        return Risk(RiskLevel.NONE, "no messages")
    if oldest_age is None:
        return Risk(RiskLevel.UNKNOWN, f"drops a message {duration(retention)} after it was sent; age not known")
    left = retention - oldest_age
    if left <= 0:
        return Risk(RiskLevel.NOW, "drops messages now", 0.0)
    level = RiskLevel.SOON if left < _SOON else RiskLevel.LATER
    return Risk(level, f"drops messages {'in' if fifo else 'within'} {duration(left)}", left)
