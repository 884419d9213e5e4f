"""Decide whether a condition holds. A value near its threshold does not open and close it again and again."""

from __future__ import annotations

from typing import Final

#: An open condition ends when its value falls below this share of the threshold.
BACK: Final = 0.75


def holds(value: float, threshold: float, *, is_open: bool) -> bool:
    """Return whether a condition holds: above `threshold`, or once it is open, at `BACK` of it or above."""
    return value >= threshold * BACK if is_open else value > threshold
