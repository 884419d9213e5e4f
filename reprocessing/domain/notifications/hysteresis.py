"""Decide whether a condition holds, with hysteresis: small changes near the threshold do not change the result."""

from __future__ import annotations

from typing import Final

#: An open condition ends when its value falls below this share of the threshold.
BACK: Final = 0.75


def holds(value: float, threshold: float, *, is_open: bool) -> bool:
    """Return whether a condition holds. It begins if `value` is above `threshold`, and ends below 75 % of `threshold`.

    `is_open`: whether the condition held before.
    """
    return value >= threshold * BACK if is_open else value > threshold
