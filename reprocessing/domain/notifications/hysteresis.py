"""Decide whether a condition holds, so that a value near its threshold does not open and close it again and again."""

from __future__ import annotations

from typing import Final

#: The share of its threshold below which a value has to fall before an open condition is over.
BACK: Final = 0.75


def holds(value: float, threshold: float, *, is_open: bool) -> bool:
    """Return whether a condition holds: from its threshold on, and once it is open, down to a share of it."""
    return value >= (threshold * BACK if is_open else threshold)
