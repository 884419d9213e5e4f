"""The line of figures at the top of the dashboard, such as "Needs review". Each figure links to its DLQs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from urllib.parse import urlencode

from django.urls import reverse

from reprocessing.admin.dashboard.dlq_row import SOON, DlqRow, RowState
from reprocessing.admin.messages.readable_bytes import duration


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure with its label and link.

    Attributes:
        mood: "warm" if a person is needed, "bad" if it is urgent, else empty.
        note: name of the DLQ that the figure is about, or number of the DLQs that it counts.
    """

    label: str
    value: str
    address: str
    mood: str = ""
    note: str = ""


def figures(found: Sequence[DlqRow]) -> list[Figure]:
    """Return the figures about these DLQs together."""
    return [
        _sum(found, "Needs review", lambda row: row.review, RowState.REVIEW, "-review", part="review", mood="warm",
             is_lower_bound=lambda row: row.is_review_lower_bound),
        _sum(found, "In progress", lambda row: row.progress, RowState.PROGRESS, "-progress", part="progress",
             is_lower_bound=lambda row: row.is_progress_lower_bound),
        _sum(found, "Delivered in 24 h", lambda row: row.trend.delivered, RowState.DELIVERED, "-trend", part="hours-1"),
        _sum(found, "Failed in 24 h", lambda row: row.trend.failed, RowState.FAILED, "-trend", part="hours-2"),
        _oldest(found),
        _soonest(found),
    ]  # fmt: skip


def _sum(  # noqa: PLR0913  # each by its name
    found: Sequence[DlqRow], label: str, count: Callable[[DlqRow], int], state: RowState, sort: str, *,
    part: str, mood: str = "", is_lower_bound: Callable[[DlqRow], bool] = lambda _: False,
) -> Figure:  # fmt: skip
    """Return a figure with the sum of `count` over these DLQs. It links to the DLQs whose count is not 0.

    If only one DLQ has a count, the figure links to this DLQ's page, to the element with the HTML id `part`. Else it
    links to the table, filtered by `state` and sorted by `sort`. `is_lower_bound`: function that returns whether the
    true count of a DLQ may be higher.
    """
    counted = [row for row in found if count(row)]
    total = sum(count(row) for row in counted)
    address = f"{_page(counted[0])}#{part}" if len(counted) == 1 else _table(state=state, sort=sort)
    more = "+" if any(map(is_lower_bound, counted)) else ""
    return Figure(label, f"{total:,}{more}", address, mood if total else "", _of(len(counted)))


def _oldest(found: Sequence[DlqRow]) -> Figure:
    row = max((row for row in found if row.age is not None), key=lambda row: row.age or 0, default=None)
    if row is None:
        return Figure("Oldest waiting", "none", _table(sort="-oldest"))
    age = duration(timedelta(seconds=row.age or 0))
    return Figure("Oldest waiting", age, _table(sort="-oldest"), "", row.status.name)


def _soonest(found: Sequence[DlqRow]) -> Figure:
    row = min((row for row in found if row.left is not None), key=lambda row: row.left or 0, default=None)
    if row is None:
        return Figure("Next to expire", "none", _table(sort="expires"))
    left = row.left or 0
    mood = "bad" if left < SOON else ""
    return Figure("Next to expire", duration(timedelta(seconds=left)), _table(sort="expires"), mood, row.status.name)


def _of(dlqs: int) -> str:
    return f"{dlqs:,} DLQs" if dlqs > 1 else ""


def _page(row: DlqRow) -> str:
    return reverse("admin:board_dlq", args=[row.status.id])


def _table(**asked: str) -> str:
    return f"{reverse('admin:index')}?{urlencode(asked)}#dlqs"
