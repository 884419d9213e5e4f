"""The chart of a run's rate: messages per minute, drawn as SVG, with a table of the same numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from reprocessing.domain.runs.rate_chart import MinuteCount, RateColumn, rate_columns

_WIDTH, _LEFT, _TOP, _HEIGHT, _BOTTOM = 1_000, 64, 26, 120, 24  # pixels
_LEAST: Final = 1.5  # min height of a bar above 0, so that it is visible
_WIDEST: Final = 48.0  # max width of a column, for runs of a few minutes
_LABELS: Final = 6  # about how many labels the x axis has


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar: its place and size in pixels, and its text."""

    x: float
    y: float
    width: float
    height: float
    title: str


@dataclass(frozen=True, slots=True)
class Label:
    """A label of an axis, at this x or y coordinate in pixels."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class RateChart:
    """The values from which the template draws the chart.

    `limit_y`: y coordinate of the line at the allowed rate; None: no limit, or above the chart. `minutes`: time that a
    column covers. `left`, `base`: coordinates of the axes' crossing point.
    """

    bars: list[Bar]
    x_labels: list[Label]
    y_labels: list[Label]
    columns: list[RateColumn]
    minutes: int
    limit_y: float | None
    width: int = _WIDTH
    left: int = _LEFT
    base: int = _TOP + _HEIGHT
    height: int = _TOP + _HEIGHT + _BOTTOM
    label_y: int = _TOP + _HEIGHT + 17


def rate_chart(counts: Sequence[MinuteCount], *, now: datetime | None, allowed: float | None) -> RateChart | None:
    """Return the chart; None: nothing was sent.

    `now`: the time at which the chart ends; None: it ends with the last send. `allowed`: messages/s; None: no limit.
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
    )  # fmt: skip


def y_scale(largest: float) -> tuple[int, int]:
    """Return the step between two lines of the y axis (1, 2 or 5 times a power of ten), and the value of the top line.

    `largest`: the largest value of the chart.
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
