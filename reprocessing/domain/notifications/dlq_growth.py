"""Decide whether a DLQ grows faster than it drains, from counts that are noted every few minutes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

#: How many notes are taken within the time for which a DLQ has to grow.
NOTES: Final = 12
#: A DLQ is growing if it grew by so many messages, and by this share of its first backlog.
LEAST, SHARE = 10, 0.1
#: The share of changes between two notes that has to be upward: a DLQ that fills and is emptied again is not growing.
UPWARD: Final = 0.75
#: The note of halfway, with which an open condition is compared, is at least this share of the time old.
_HALFWAY: Final = 0.25


@dataclass(frozen=True, slots=True)
class DlqNote:
    """The counts of a DLQ at one moment: messages only in SQS, captured until then, and captured but not finished."""

    seconds_ago: float
    uncaptured: int
    captured: int
    unfinished: int

    @property
    def backlog(self) -> int:
        """Messages that were not finished."""
        return self.uncaptured + self.unfinished


@dataclass(frozen=True, slots=True)
class Growth:
    """More messages arrived in a DLQ than left it."""

    arrived: int
    drained: int
    seconds: float
    backlog: int


@dataclass(frozen=True, slots=True)
class NotGrowing:
    """A DLQ did not grow."""


@dataclass(frozen=True, slots=True)
class GrowthUnknown:
    """There are too few notes, such as after workers were away."""


def growth(notes: Sequence[DlqNote], *, within: float, is_open: bool) -> Growth | NotGrowing | GrowthUnknown:
    """Return by how much a DLQ grew, or that it did not, or that the notes do not tell.

    Args:
        notes: of one DLQ, the oldest first; older ones than `within` are not looked at.
        within: seconds over which it has to have grown.
        is_open: it was growing before. Then it is growing while its backlog is larger than `within / 2` seconds ago.
    """
    seen = [note for note in notes if note.seconds_ago <= within * (1 + 1 / NOTES)]
    if len(seen) < NOTES // 2 or seen[0].seconds_ago < within * (1 - 1 / NOTES):
        return GrowthUnknown()
    first, last = seen[0], seen[-1]
    arrived = last.captured - first.captured + last.uncaptured - first.uncaptured
    grown = last.backlog - first.backlog
    found = Growth(max(arrived, 0), max(arrived - grown, 0), first.seconds_ago, last.backlog)
    if is_open:
        halfway = next(note for note in seen if note.seconds_ago <= within / 2 or note is last)
        if halfway.seconds_ago < within * _HALFWAY:
            return GrowthUnknown()
        return found if last.backlog > halfway.backlog else NotGrowing()
    steps = [later.backlog - earlier.backlog for earlier, later in pairwise(seen) if later.backlog != earlier.backlog]
    if grown < max(LEAST, SHARE * first.backlog) or sum(step > 0 for step in steps) < UPWARD * len(steps):
        return NotGrowing()
    return found
