"""Decide whether SQS deletes uncaptured messages of a DLQ so soon that people are notified."""

from __future__ import annotations


def seconds_left(*, waited: float, retention: float, within: float) -> float | None:
    """Return in how many seconds, at most, SQS deletes the first message; None: in more than `within` seconds.

    `waited`: for how many seconds every check has found uncaptured messages in the DLQ. `retention`: seconds for which
    the DLQ keeps a message. In a standard queue a message may expire earlier, because retention begins when the message
    is first sent to its source queue.
    """
    left = retention - waited
    return max(left, 0.0) if left <= within else None
