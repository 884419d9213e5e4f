"""Decide whether SQS soon deletes messages that nobody has captured."""

from __future__ import annotations


def seconds_left(*, waited: float, retention: float, within: float) -> float | None:
    """Return the most seconds until SQS deletes the first message; None: more than `within` seconds.

    `waited`: seconds for which the DLQ has always had uncaptured messages. The oldest message may expire earlier: in a
    standard queue, retention begins when a message is first sent to the source queue.
    """
    left = retention - waited
    return max(left, 0.0) if left <= within else None
