"""Decide whether SQS soon deletes messages that nobody has captured."""

from __future__ import annotations


def seconds_left(*, waited: float, retention: float, within: float) -> float | None:
    """Return the most seconds until SQS deletes the first message; None if there are more than `within` seconds.

    `waited` is for how many seconds the DLQ has had uncaptured messages without a break. In a standard queue a message
    may expire earlier, because its retention begins when it is first sent to the source queue.
    """
    left = retention - waited
    return max(left, 0.0) if left <= within else None
