"""Breakers and ramps, moved by what the attempts say. Each call is harmless when it is doubled, or lost.

Called after the commit that recorded outcomes, and outside any transaction: what it reads is what is written by then,
and a row is moved only where nobody has moved it since (compare and set).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Moved:
    """A breaker that this call has moved; `target` is its name, with that of the class of letters where it has one."""

    breaker_id: int
    target: str
    before: str
    after: str
    why: str


def look(ids: Collection[int]) -> list[Moved]:
    """Open closed breakers whose letters fail, and let the canaries of half-open ones decide. Three statements at most.

    Of a closed breaker only failures matter, of a half-open one every outcome of its canary; an open one is left alone.

    Returns:
        Those that this call opened or closed.
    """
    raise NotImplementedError


def climb(ids: Collection[int]) -> int:
    """Take the step of the ramp that is due, if anything was settled since the last one; how many took one.

    One statement reads the rows; where no step is due, that is all.
    """
    raise NotImplementedError


def after_rest(ids: Collection[int] | None = None) -> int:
    """Put ramps back to their start where nothing was settled for long; how many. None: of all breakers.

    To be called before letters go: one statement, which as a rule finds nothing.
    """
    raise NotImplementedError


def sweep() -> list[Moved]:
    """Look where a worker may have died between recording outcomes and looking; those that were opened or closed."""
    raise NotImplementedError


def reset(  # noqa: PLR0913  # each by its name
    target_id: int,
    *,
    to: Literal["closed", "open"],
    by: str,
    reason: str,
    seconds: float | None = None,
    rate_class: int | None = None,
) -> list[Moved]:
    """Close or open a target's breakers by hand, with the review; all of them, or that of one class of letters.

    Closed: what was seen before no longer counts, and the ramp begins anew. Open: for `seconds`, by default for the
    cooldown; then canaries go as they would by themselves.
    """
    raise NotImplementedError
