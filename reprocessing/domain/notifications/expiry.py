"""Decide whether SQS soon deletes messages that nobody has captured."""

from __future__ import annotations


def seconds_left(*, waited: float, retention: float, within: float) -> float | None:
    """Return the most seconds until SQS deletes the first message; None: there is more time than `within`.

    Args:
        waited: for how long messages have lain in the DLQ without a moment in which there was none. The oldest may be
            older: in a standard queue its time began when it was first sent.
        retention: seconds for which the DLQ keeps a message.
        within: seconds before that a person is told.
    """
    left = retention - waited
    return max(left, 0.0) if left <= within else None
