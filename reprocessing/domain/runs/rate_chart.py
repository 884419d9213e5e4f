"""Divide the minutes of a run into the columns of a chart of its rate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

#: Max columns of a chart.
COLUMNS: Final = 60
#: Minutes that a column may have. A chart has at most 24 hours, so 60 columns of 30 minutes are enough.
_STEPS: Final = (1, 2, 5, 10, 30)
_DAY: Final = 1_440
_MINUTE: Final = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class MinuteCount:
    """How many messages a run sent in the minute that began at `minute`."""

    minute: datetime
    sent: int


@dataclass(frozen=True, slots=True)
class RateColumn:
    """One column: `sent` messages in the `minutes` that began at `start`."""

    start: datetime
    minutes: int
    sent: int

    @property
    def rate(self) -> float:
        """Return the messages per minute."""
        return self.sent / self.minutes


def rate_columns(counts: Sequence[MinuteCount], *, now: datetime | None) -> list[RateColumn]:
    """Return the columns of the chart, oldest first, for at most the last 24 hours; empty if nothing was sent.

    `counts`: oldest first; minutes in which nothing was sent may be missing. `now`: the end of the chart; None: the run
    has ended, so the chart ends with the last minute of `counts`. The last column may be shorter than the others.
    """
    if not counts:
        return []
    end = counts[-1].minute + _MINUTE
    if now is not None:
        end = max(end, now.replace(second=0, microsecond=0) + _MINUTE)
    since = end - _DAY * _MINUTE
    begins = next((each.minute for each in counts if each.minute >= since), end)
    span = (end - begins) // _MINUTE
    step = next(each for each in _STEPS if span <= each * COLUMNS)
    sums = [0] * -(-span // step)
    for each in counts:
        if each.minute >= begins:
            sums[(each.minute - begins) // _MINUTE // step] += each.sent
    return [
        RateColumn(begins + place * step * _MINUTE, min(step, span - place * step), n) for place, n in enumerate(sums)
    ]
