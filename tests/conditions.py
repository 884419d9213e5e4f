"""Waiting for what becomes true, with a deadline; the only place of the tests where a clock passes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Seen = TypeVar("Seen")


def eventually(look: Callable[[], Seen], *, within: float, every: float = 0.02) -> Seen:
    """The first true thing that `look` sees; fails when it sees none `within` seconds."""
    deadline = time.monotonic() + within
    while not (seen := look()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not seen within {within:g} s: {look}")
        time.sleep(every)
    return seen
