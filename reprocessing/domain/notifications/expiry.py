"""Decide whether SQS soon deletes messages that nobody has captured."""

from __future__ import annotations


def seconds_left(*, waited: float, retention: float, within: float) -> float | None:
    """Return the most seconds until SQS deletes the first message; None: there is more time than `within`.

    Args:
        waited: seconds for which there have always been uncaptured messages in the DLQ. The oldest may be older: in a
            standard queue its retention began when it was first sent to the source queue.
        retention: seconds for which the DLQ keeps a message.
        within: people are notified when fewer seconds than this are left.
    """
    left = retention - waited
    return max(left, 0.0) if left <= within else None
