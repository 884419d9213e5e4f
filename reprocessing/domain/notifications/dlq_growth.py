"""Decide whether a DLQ grows faster than it drains, from message counts that are stored every few minutes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

#: How many notes (message counts, `DlqNote`) of a DLQ are stored in the time over which its growth is measured.
NOTES: Final = 12
#: A DLQ is growing if its backlog grew by at least 10 messages, and by at least 10 % since the oldest note.
LEAST, SHARE = 10, 0.1
#: A DLQ is growing only if at least this share of the backlog's changes are increases.
UPWARD: Final = 0.75
#: While a DLQ is growing, its backlog is compared with the note of `within / 2` seconds ago, else with the next newer
#: note. That note's age must be at least this share of `within`.
_HALFWAY: Final = 0.25


@dataclass(frozen=True, slots=True)
class DlqNote:
    """A DLQ's message counts at one moment.

    Attributes:
        seconds_ago: how long ago that moment was.
        uncaptured: messages that are only in SQS.
        captured: all messages that were ever captured, finished or not.
        unfinished: captured messages that are not finished.
    """

    seconds_ago: float
    uncaptured: int
    captured: int
    unfinished: int

    @property
    def backlog(self) -> int:
        """Return how many messages were not finished, whether they were captured or only in SQS."""
        return self.uncaptured + self.unfinished


@dataclass(frozen=True, slots=True)
class Growth:
    """In the last `seconds`, more messages came to a DLQ (`arrived`) than left it (`drained`); `backlog` remain."""

    arrived: int
    drained: int
    seconds: float
    backlog: int


@dataclass(frozen=True, slots=True)
class NotGrowing:
    """The stored message counts show that the DLQ did not grow."""


@dataclass(frozen=True, slots=True)
class GrowthUnknown:
    """Fewer than 6 message counts are stored, or only recent counts, for example because workers were stopped."""


def growth(notes: Sequence[DlqNote], *, within: float, is_open: bool) -> Growth | NotGrowing | GrowthUnknown:
    """Return by how much a DLQ grew, or that it did not grow, or that too few message counts are known.

    Args:
        notes: message counts of one DLQ, the oldest first; counts older than `within` are ignored.
        within: seconds over which the DLQ must have grown.
        is_open: whether the DLQ counted as growing before. If so, it still counts as growing as long as its backlog is
            larger than it was `within / 2` seconds ago.
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
