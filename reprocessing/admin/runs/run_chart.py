"""The chart of how many messages a run sent per minute, drawn as SVG, with a table of the same numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from math import ceil
from typing import Final

from reprocessing.domain.runs.rate_chart import MinuteCount, RateColumn, rate_columns

_WIDTH, _LEFT, _TOP, _HEIGHT, _BOTTOM = 1_000, 64, 12, 120, 24  # pixels
_LEAST: Final = 1.5  # min height of a bar above 0, so that it is visible
_WIDEST: Final = 48.0  # max width of a column, for runs of a few minutes
_NARROWEST: Final = 300  # min width of the chart: room for the labels of a run of one minute
_LABELS: Final = 6  # about how many labels the x axis has


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar of the chart: its place and size in pixels, and its tooltip (`title`)."""

    x: float
    y: float
    width: float
    height: float
    title: str


@dataclass(frozen=True, slots=True)
class Label:
    """A label of an axis. `at`: its x coordinate (on the y axis: its y coordinate) in pixels."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class RateChart:
    """The values from which the template draws the chart. Coordinates are in pixels.

    Attributes:
        minutes: how many minutes a bar covers.
        width: width of the chart. It ends with the newest column, so that a phone can show the right end first.
        limit_y: y coordinate of the line that shows the allowed rate; None: no limit, or the limit is above the chart.
        left, base: x and y coordinate of the point at which the axes cross.
        label_y: y coordinate of the labels of the x axis.
    """

    bars: list[Bar]
    x_labels: list[Label]
    y_labels: list[Label]
    columns: list[RateColumn]
    minutes: int
    limit_y: float | None
    width: int
    left: int = _LEFT
    base: int = _TOP + _HEIGHT
    height: int = _TOP + _HEIGHT + _BOTTOM
    label_y: int = _TOP + _HEIGHT + 17


def rate_chart(counts: Sequence[MinuteCount], *, now: datetime | None, allowed: float | None) -> RateChart | None:
    """Return the chart of a run; None: the run sent nothing.

    `now`: the time at which the chart ends; None: it ends with the last send. `allowed`: the allowed rate in
    messages/s; None: the rate is not limited.
    """
    columns = rate_columns(counts, now=now)
    if not columns:
        return None
    step, most = y_scale(max(column.rate for column in columns))
    slot = min((_WIDTH - _LEFT) / len(columns), _WIDEST)
    limit = None if allowed is None else allowed * 60
    return RateChart(
        bars=[_bar(column, place, slot, most) for place, column in enumerate(columns) if column.sent],
        x_labels=_x_labels(columns, slot), y_labels=[Label(_y(n, most), f"{n:,}") for n in range(0, most + 1, step)],
        columns=[column for column in columns if column.sent][::-1], minutes=columns[0].minutes,
        limit_y=_y(limit, most) if limit and limit <= most else None,
        width=max(ceil(_LEFT + slot * len(columns)), _NARROWEST),
    )  # fmt: skip


def y_scale(largest: float) -> tuple[int, int]:
    """Return the distance between two lines of the y axis, and the value of the highest line.

    The distance is 1, 2 or 5 times a power of ten. `largest`: the largest value in the chart.
    """
    step = power = 1
    while step * 4 < largest:
        step = next((factor * power for factor in (2, 5, 10) if factor * power * 4 >= largest), 10 * power)
        power *= 10
    return step, max(-int(-largest // step), 1) * step


def _y(n: float, most: int) -> float:
    return round(_TOP + _HEIGHT * (1 - n / most), 1)


def _bar(column: RateColumn, place: int, slot: float, most: int) -> Bar:
    height = max(round(_HEIGHT * column.rate / most, 1), _LEAST)
    per = "" if column.minutes == 1 else f" in {column.minutes} minutes, {column.rate:,.3g} a minute"
    title = f"{column.start:%Y-%m-%d %H:%M} UTC: {column.sent:,} sent{per}"
    x = round(_LEFT + slot * place, 1)
    return Bar(x, round(_TOP + _HEIGHT - height, 1), round(max(slot * 0.85, 1), 1), height, title)


def _x_labels(columns: Sequence[RateColumn], slot: float) -> list[Label]:
    every = max(-(-len(columns) // _LABELS), 1) if slot * len(columns) > _LABELS * _WIDEST else 2
    return [
        Label(round(_LEFT + slot * (place + 0.42), 1), f"{column.start:%H:%M}")
        for place, column in enumerate(columns)
        if place % every == 0
    ]
