"""Draw the trend of a DLQ as the data of SVG paths, 24 units wide and 12 units high."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from reprocessing.store.dlqs.message_counts import Trend

#: Number of hours shown, with the current one.
HOURS: Final = 24
#: Height of the largest count.
HEIGHT: Final = 12
_LEAST: Final = 1  # height of a count that is not 0: it is seen


@dataclass(frozen=True, slots=True)
class Sparkline:
    """The area of the captured messages, the line of the delivered ones, and the text of both for screen readers."""

    captured: str
    delivered: str
    text: str


def sparkline(trend: Trend) -> Sparkline | None:
    """Return the drawing of a trend; None if there is nothing to draw. Both parts have one scale."""
    largest = max((*trend.captured_by_hour, *trend.delivered_by_hour), default=0)
    if not largest:
        return None
    text = f"24 h: {trend.captured:,} captured, {trend.delivered:,} delivered, {trend.failed:,} failed again"
    return Sparkline(
        _bars(_heights(trend.slots, trend.captured_by_hour, largest)),
        _line(_heights(trend.slots, trend.delivered_by_hour, largest)) if trend.delivered else "", text,
    )  # fmt: skip


def _heights(slots: Sequence[int], counts: Sequence[int], largest: int) -> list[int]:
    heights = [0] * HOURS
    for slot, count in zip(slots, counts, strict=True):
        if count > 0 and 0 <= slot < HOURS:
            heights[slot] = max(round(HEIGHT * count / largest), _LEAST)
    return heights


def _bars(heights: Sequence[int]) -> str:
    """Return one bar for each hour; neighbours of equal height are one bar."""
    return "".join(
        f"M{start} {HEIGHT}v-{height}h{end - start}v{height}" for start, end, height in _spans(heights) if height
    )


def _line(heights: Sequence[int]) -> str:
    """Return a line through the middle of each hour; hours of equal height are one part."""
    points = [(x + 0.5, HEIGHT - height) for start, end, height in _spans(heights) for x in sorted({start, end - 1})]
    return "M" + "L".join(f"{x:g} {y}" for x, y in points)


def _spans(heights: Sequence[int]) -> list[tuple[int, int, int]]:
    spans: list[tuple[int, int, int]] = []
    for slot, height in enumerate(heights):
        if spans and spans[-1][2] == height:
            spans[-1] = (spans[-1][0], slot + 1, height)
        else:
            spans.append((slot, slot + 1, height))
    return spans
