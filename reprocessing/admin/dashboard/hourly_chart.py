"""The chart of the last 24 hours: how many messages were captured, delivered, failed, parked and discarded each hour.

It is drawn as SVG, with a table of the same numbers. It begins at the first hour with messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil
from typing import Final

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBadRequest
from django.template.response import TemplateResponse
from django.views.decorators.http import require_safe

from reprocessing.admin.dashboard.sparkline import HOURS
from reprocessing.admin.site import visible_rows
from reprocessing.domain.lifecycle import LetterState
from reprocessing.store.maintenance import counters
from reprocessing.store.ordering import lanes
from reprocessing.store.rights.visible_dlqs import EVERY_DLQ, VisibleDlqs

#: The kinds of events that the chart counts, with their labels.
KINDS: Final = {
    "captured": "captured",
    LetterState.DELIVERED.value: "delivered",
    "failed": "failed again",
    LetterState.PARKED.value: "parked",
    LetterState.DISCARDED.value: "discarded",
}
_LEFT, _TOP, _HEIGHT, _BOTTOM = 64, 40, 160, 26  # pixels: margins around the bars, and height of the highest bar
_FEW, _SOME = 6, 12  # up to `_FEW` hours, bars show their counts; above `_SOME` hours, every other hour has a label
_WIDTHS: Final = {_FEW: 150, _SOME: 84, HOURS: 53}  # pixels for each hour, by the max number of hours in the chart
_GRID_LINES: Final = 4  # max lines of the y axis above 0
_FILLED: Final = 0.8  # share of an hour's width that its bars fill
_CHAR, _GAP = 7, 4  # pixels: width of a digit of a label, and distance between two labels
_WIDEST: Final = 1_080  # pixels of a chart whose hours are wider than usual


@dataclass(frozen=True, slots=True)
class HourCounts:
    """The start of an hour, and the number of events of each kind in this hour, in the order of `KINDS`."""

    hour: datetime
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar of the chart: its place and size in pixels.

    Attributes:
        kind: index of the kind of event in `KINDS`. It sets the colour of the bar.
        label: the count above the bar; empty if the chart has too many hours, or the bar is narrower than the count.
    """

    kind: int
    x: float
    y: float
    width: float
    height: float
    title: str
    label: str

    @property
    def middle(self) -> float:
        """Return the x coordinate of the middle of the bar, in pixels."""
        return self.x + self.width / 2


@dataclass(frozen=True, slots=True)
class Label:
    """A label of an axis. `at`: its x coordinate (on the y axis: its y coordinate) in pixels."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Chart:
    """The values from which the template draws the chart and its table.

    Attributes:
        dlq: id of the DLQ; None: all DLQs.
        hours: the counts of all hours, newest first, for the table.
        totals: for each kind of event that occurred, its index in `KINDS`, its label, and its sum.
        now: the time of the counts. The page shows it, because it refreshes the chart less often than other figures.
        is_young: whether the chart covers less than 24 hours, because there were no earlier messages.
        left, base: x and y coordinate of the point at which the axes cross. `label_y`: y coordinate of labels of hours.
    """

    dlq: int | None
    hours: list[HourCounts]
    totals: list[tuple[int, str, int]]
    bars: list[Bar]
    x_labels: list[Label]
    y_labels: list[Label]
    width: int
    now: datetime
    is_young: bool
    kinds: tuple[str, ...] = tuple(KINDS.values())
    left: int = _LEFT
    base: int = _TOP + _HEIGHT
    height: int = _TOP + _HEIGHT + _BOTTOM
    label_y: int = _TOP + _HEIGHT + 17


def hourly_counts(now: datetime, dlq: int | None = None, *, seen: VisibleDlqs = EVERY_DLQ) -> list[HourCounts]:
    """Return the counts of the last 24 hours, oldest first; hours without events have zeros.

    `dlq`: id of the DLQ to count; None: all DLQs that `seen` includes.
    """
    first = now.replace(minute=0, second=0, microsecond=0) - timedelta(hours=HOURS - 1)
    found = {(hour.hour, hour.what): hour.n for hour in counters.counts_by_hour(HOURS, dlq, seen=seen)}
    hours = [first + timedelta(hours=number) for number in range(HOURS)]
    return [HourCounts(hour, tuple(found.get((hour, kind), 0) for kind in KINDS)) for hour in hours]


def chart(now: datetime, dlq: int | None = None, *, seen: VisibleDlqs = EVERY_DLQ) -> Chart:
    """Return the chart of a DLQ; `dlq` None: of all DLQs that the person sees."""
    every = hourly_counts(now, dlq, seen=seen)
    first = next((number for number, hour in enumerate(every) if any(hour.counts)), HOURS)
    shown = every[first:]
    sums = [sum(hour.counts[kind] for hour in shown) for kind in range(len(KINDS))]
    drawn = [kind for kind, n in enumerate(sums) if n]
    step, most = _scale(max((max(hour.counts) for hour in shown), default=0))
    slot = _slot(shown, drawn)
    return Chart(
        dlq=dlq, hours=every[::-1], totals=[(kind, list(KINDS.values())[kind], sums[kind]) for kind in drawn],
        bars=list(_bars(shown, drawn, slot, most)), x_labels=list(_hour_labels(shown, slot)),
        y_labels=[Label(_y(n, most), f"{n:,}") for n in range(0, most + 1, step)],
        width=_LEFT + slot * len(shown) + 8, now=now, is_young=0 < len(shown) < HOURS,
    )  # fmt: skip


def _slot(shown: Sequence[HourCounts], drawn: Sequence[int]) -> int:
    """Return the width of an hour in pixels. In a chart of few hours, counts have to fit above the bars."""
    slot = next(width for hours, width in _WIDTHS.items() if len(shown) <= hours)
    if not 0 < len(shown) <= _FEW:
        return slot
    longest = max(len(f"{hour.counts[kind]:,}") for hour in shown for kind in drawn)
    needed = ceil((longest * _CHAR + _GAP) * len(drawn) / _FILLED)
    return max(slot, min(needed, _WIDEST // len(shown)))


def _scale(largest: int) -> tuple[int, int]:
    """Return the distance between two lines of the y axis, and the count at the highest line.

    The distance is 1, 2 or 5 times a power of ten. `largest`: the largest count in the chart.
    """
    step = power = 1
    while step * _GRID_LINES < largest:
        step = next((factor * power for factor in (2, 5, 10) if factor * power * _GRID_LINES >= largest), 10 * power)
        power *= 10
    return step, max(-(-largest // step), 1) * step


def _y(n: int, most: int) -> float:
    return round(_TOP + _HEIGHT * (1 - n / most), 1)


def _bars(shown: Sequence[HourCounts], drawn: Sequence[int], slot: int, most: int) -> Iterator[Bar]:
    width = round(slot * _FILLED / max(len(drawn), 1), 1)
    for place, hour in enumerate(shown):
        for order, kind in enumerate(drawn):
            if n := hour.counts[kind]:
                height = max(round(_HEIGHT * n / most, 1), 1.5)
                title = f"{hour.hour:%Y-%m-%d %H:%M} UTC: {n:,} {list(KINDS.values())[kind]}"
                x = round(_LEFT + slot * (place + 0.1) + width * order, 1)
                fits = len(f"{n:,}") * _CHAR < width
                label = f"{n:,}" if len(shown) <= _FEW and fits else ""
                yield Bar(kind, x, _TOP + _HEIGHT - height, max(width - 1, 1), height, title, label)


def _hour_labels(shown: Sequence[HourCounts], slot: int) -> Iterator[Label]:
    every = 2 if len(shown) > _SOME else 1
    for place, hour in enumerate(shown):
        if (len(shown) - 1 - place) % every == 0:
            text = f"{hour.hour:%H:%M}" if hour.hour.hour else f"{hour.hour:%b} {hour.hour.day}"
            yield Label(_LEFT + slot * (place + 0.5), text)


@require_safe
def page(request: HttpRequest) -> HttpResponse:
    """Return the chart and its table, which an open page requests again every minute.

    Raises:
        PermissionDenied: this person may not see DLQs.
        Http404: this person does not see the DLQ.
    """
    if not request.user.has_perm("reprocessing.view_deadletterqueue"):
        raise PermissionDenied
    asked = request.GET.get("dlq", "")
    if asked and not (asked.isascii() and asked.isdigit() and len(asked) < 19):  # noqa: PLR2004  digits of a bigint
        return HttpResponseBadRequest("dlq must be the number of a DLQ.")
    seen = visible_rows.of(request)
    if asked and not seen.includes(int(asked)):
        raise Http404
    found = chart(lanes.database_now(), int(asked) if asked else None, seen=seen)
    return TemplateResponse(request, "reprocessing/admin/hourly_chart.html", {"chart": found, "is_part": True})
