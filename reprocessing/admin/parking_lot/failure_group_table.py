"""The table of failure groups: its filter and order from the URL, and its rows with a sparkline and actions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlencode

from django.urls import reverse

from reprocessing.admin.messages.readable_bytes import visible
from reprocessing.admin.parking_lot.failure_group_cards import cause_words, id_parameter, moment
from reprocessing.models.parking_lot import FailureGroupStatus
from reprocessing.store.parking_lot import failure_group_pages
from reprocessing.store.parking_lot.failure_group_pages import MAX_KEYS, ORDERS, GroupRow

#: Max groups on one page, and max characters of a searched text.
ROWS: Final = 50
_LONGEST_TEXT: Final = 200
_LAST_PAGE: Final = 2_000
#: The columns: order of the list after the first click on the title (empty: no order), and title.
_COLUMNS: Final = (
    ("title", "Failure or type"), ("-parked", "Parked"), ("-messages", "Messages"), ("", "Trend"),
    ("-first", "First sent"), ("-last", "Last sent"),
    ("", "Keys"), ("", "Sample"), ("status", "Status"), ("assigned", "Assigned to"),
)  # fmt: skip
_CHIPS: Final = {FailureGroupStatus.OPEN: "chip-bad", FailureGroupStatus.ACKNOWLEDGED: "chip-warm"}
_HEIGHT: Final = 20  # SVG units: of a sparkline; each bar is 3 units wide, with a gap of 1


@dataclass(frozen=True, slots=True)
class GroupQuery:
    """The filter, order and page of the table of failure groups, from the URL's query.

    Values in the URL that cannot be read are ignored. `days`: whether the sparklines show the last 14 days. If not,
    they show the last 24 hours.
    """

    dlq: int | None = None
    status: str | None = None
    text: str = ""
    order: str = "new"
    days: bool = False
    page: int = 1

    @classmethod
    def read(cls, query: Mapping[str, str]) -> GroupQuery:
        """Return the filter, order and page in a URL's query."""
        status, order = query.get("status", ""), query.get("sort", "")
        return cls(
            dlq=id_parameter(query, "dlq"),
            status=status if status in set(FailureGroupStatus) else None,
            text="".join(filter(str.isprintable, query.get("q", "")))[:_LONGEST_TEXT].strip(),
            order=order if order in ORDERS else "new",
            days=query.get("trend") == "14d",
            page=min(id_parameter(query, "page") or 1, _LAST_PAGE),
        )

    @property
    def is_narrow(self) -> bool:
        """Return whether a filter is set: by DLQ, status or text."""
        return bool(self.dlq or self.status or self.text)

    @property
    def unsorted(self) -> str:
        """Return the URL query for the first page in the default order, with the same filter."""
        return replace(self, order="new", page=1).address

    @property
    def address(self) -> str:
        """Return this filter, order and page as a URL query. Default values are left out."""
        values = {
            "dlq": self.dlq, "status": self.status, "q": self.text, "sort": self.order if self.order != "new" else "",
            "trend": "14d" if self.days else "", "page": self.page if self.page > 1 else "",
        }  # fmt: skip
        return f"?{urlencode({name: value for name, value in values.items() if value})}"


def columns(asked: GroupQuery) -> list[dict[str, str]]:
    """Return for each column its label, the URL query that sorts by the column, and its current sort order."""
    found = []
    for order, label in _COLUMNS:
        now = "" if asked.order.lstrip("-") != order.lstrip("-") else asked.order
        other = order if now != order else order.lstrip("-") if order.startswith("-") else f"-{order}"
        sort = ("descending" if now.startswith("-") else "ascending") if now else ""
        address = replace(asked, order=other, page=1).address if order else ""
        found.append({"label": label, "address": address, "sort": sort})
    return found


def table_rows(groups: Sequence[GroupRow], *, days: bool, now: datetime, sees_letters: bool) -> list[dict[str, Any]]:
    """Return the template values of a row for each group, with its sparkline. Two SQL statements read all rows."""
    ids = [group.id for group in groups]
    newest = failure_group_pages.newest_letters(ids) if ids else {}
    hours = failure_group_pages.letters_by_hour(ids, days=days) if ids else {}
    found = []
    for group in groups:
        last = newest.get(group.id)
        found.append({
            "group": group, "title": visible(group.title), "read_from": cause_words(group.cause),
            "chip": _CHIPS.get(FailureGroupStatus(group.status), ""),
            "first": moment(group.first_at, now), "last": moment(group.last_at, now),
            "spark": sparkline(hours[group.id], "days" if days else "hours"),
            "keys": "-" if last is None else f"{last.keys:,}{'+' if last.letters >= MAX_KEYS else ''}",
            "sample": reverse("admin:reprocessing_letter_change", args=[last.letter]) if last and sees_letters else "",
            "rule": f"{reverse('admin:reprocessing_rule_add')}?group={group.id}" if last else "",
            "address": reverse("admin:reprocessing_failuregroup_change", args=[group.id]),
            "lot": f"{reverse('admin:reprocessing_parkedletter_changelist')}?group={group.id}",
        })  # fmt: skip
    return found


def sparkline(counts: Sequence[int], unit: str) -> dict[str, Any]:
    """Return the SVG path and size of a small bar chart, and a sentence with its numbers for screen readers.

    `counts`: the number of messages in each hour or day, oldest first. `unit`: "hours" or "days".
    """
    most = max(counts, default=0)
    bars = []
    for step, n in enumerate(counts):
        high = max(2, round(_HEIGHT * n / most)) if n else 0
        bars += [f"M{step * 4} {_HEIGHT}v-{high}h3v{high}z"] if high else []
    total, one = f"{sum(counts):,} messages first sent", f"at most {most:,} in one {unit[:-1]}"
    sentence = f"{total} in the last {len(counts)} {unit}, {one}"
    return {"path": "".join(bars), "width": len(counts) * 4, "height": _HEIGHT, "words": sentence}
