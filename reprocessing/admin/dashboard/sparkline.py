"""Draw the messages of a DLQ per hour as a small chart: SVG path data, 24 units wide and 12 units high."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from reprocessing.store.dlqs.message_counts import Trend

#: Number of hours that the chart shows; the last is the current hour.
HOURS: Final = 24
#: Height of the chart, which the largest count reaches, in SVG units.
HEIGHT: Final = 12
_LEAST: Final = 1  # min height of a count above 0, so that it is visible


@dataclass(frozen=True, slots=True)
class Sparkline:
    """SVG paths: bars for captured messages and a line for delivered messages. Also a text for screen readers."""

    captured: str
    delivered: str
    text: str


def sparkline(trend: Trend) -> Sparkline | None:
    """Return the small chart of the last 24 hours; None: no message was captured or delivered."""
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
    """Return the path data of one bar for each hour; neighbouring hours of equal height share a bar."""
    return "".join(
        f"M{start} {HEIGHT}v-{height}h{end - start}v{height}" for start, end, height in _spans(heights) if height
    )


def _line(heights: Sequence[int]) -> str:
    """Return the path data of a line through the middle of each hour; hours of equal height share a segment."""
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
