"""Filter, sort and page the dashboard's table of DLQs. All choices are in the URL, so that people can share it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import urlencode

from reprocessing.admin.dashboard.dlq_row import DlqRow, RowState
from reprocessing.models.safety import BreakerState

#: Number of rows of one page of the table.
PAGE: Final = 100
_LONGEST: Final = 100  # max characters of a searched name
_DIGITS: Final = 9  # max digits of a team's id or a page number

Value = float | str | None
_SHUT: Final = {BreakerState.CLOSED.value: 0, BreakerState.HALF_OPEN.value: 1, BreakerState.OPEN.value: 2}
_RANKS: Final[Mapping[RowState, int]] = {state: number for number, state in enumerate(RowState)}
#: For each column by which the table can be sorted: the function that returns a DLQ's value.
COLUMNS: Final[Mapping[str, Callable[[DlqRow], Value]]] = {
    "name": lambda row: row.status.name,
    "state": lambda row: _RANKS[min(row.states, key=_RANKS.__getitem__)],
    "depth": lambda row: row.depth,
    "review": lambda row: row.review,
    "progress": lambda row: row.progress,
    "oldest": lambda row: row.age,
    "expires": lambda row: row.left,
    "trend": lambda row: row.trend.captured,
    "rate": lambda row: row.rate,
    "breaker": lambda row: max((_SHUT[breaker.state] for breaker in row.breakers), default=None),
    "action": lambda row: row.review + row.uncaptured,
}
#: Columns that a first click sorts in ascending order. All other columns are first sorted in descending order.
_ASCENDING: Final = frozenset({"name", "state", "expires"})


@dataclass(frozen=True, slots=True)
class TableQuery:
    """The filter, order and page of the table, as a person chose them.

    Attributes:
        name: a text that the name of a DLQ must contain; empty: all DLQs.
        team: id of a team; None: all teams.
        sort: a name of `COLUMNS`, with a minus sign for the reverse order; empty: the most urgent DLQ first.
        page: number of the page, from 1.
    """

    name: str = ""
    team: int | None = None
    state: RowState | None = None
    sort: str = ""
    page: int = 1

    @property
    def is_filtered(self) -> bool:
        """Return whether the query has a filter: a name, a team or a state."""
        return bool(self.name or self.team is not None or self.state)

    @property
    def text(self) -> str:
        """Return this query as the query string of a URL, without default values."""
        asked = {
            "q": self.name, "team": "" if self.team is None else self.team, "state": self.state or "",
            "sort": self.sort, "page": self.page if self.page > 1 else "",
        }  # fmt: skip
        return urlencode({name: value for name, value in asked.items() if value != ""})

    def matches(self, row: DlqRow) -> bool:
        """Return whether the filter matches this DLQ."""
        return (
            self.name.lower() in row.status.name.lower()
            and (self.team is None or self.team in row.teams)
            and (self.state is None or self.state in row.states)
        )

    def sorted_by(self, column: str) -> TableQuery:
        """Return the query after a click on a column: sorted by the column or, if it was already, in reverse order."""
        first = column if column in _ASCENDING else f"-{column}"
        other = f"-{column}" if column in _ASCENDING else column
        return replace(self, sort=other if self.sort == first else first, page=1)

    def on_page(self, page: int) -> TableQuery:
        """Return the same query for another page."""
        return replace(self, page=page)

    def order(self, found: Sequence[DlqRow]) -> list[DlqRow]:
        """Return the DLQs in the order that the person chose. DLQs without a value in the sorted column come last."""
        by_urgency = sorted(found, key=lambda row: row.urgency)
        if not self.sort:
            return by_urgency
        value, is_reverse = COLUMNS[self.sort.removeprefix("-")], self.sort.startswith("-")
        known = [row for row in by_urgency if value(row) is not None]
        known.sort(key=lambda row: _key(value(row)), reverse=is_reverse)
        return [*known, *(row for row in by_urgency if value(row) is None)]

    def pages(self, found: Sequence[DlqRow]) -> int:
        """Return the number of pages that these DLQs fill, at least 1."""
        return max(-(-len(found) // PAGE), 1)

    def shown(self, found: Sequence[DlqRow]) -> list[DlqRow]:
        """Return the DLQs of the chosen page, or of the last page if the chosen page does not exist."""
        start = (min(self.page, self.pages(found)) - 1) * PAGE
        return self.order(found)[start : start + PAGE]


def _key(value: Value) -> tuple[float, str]:
    return (0, value) if isinstance(value, str) else (value or 0, "")


def table_query(asked: Mapping[str, str]) -> TableQuery:
    """Return the query that the parameters of a URL describe. A parameter that is not valid is ignored."""
    state, sort = asked.get("state", ""), asked.get("sort", "")
    return TableQuery(
        name=asked.get("q", "").replace("\0", "").strip()[:_LONGEST],
        team=_number(asked.get("team", "")),
        state=RowState(state) if state in set(RowState) else None,
        sort=sort if sort.removeprefix("-") in COLUMNS and not sort.startswith("--") else "",
        page=_number(asked.get("page", "")) or 1,
    )


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= _DIGITS else None
