"""Turn the values of DLQs into the texts and links of the dashboard's table, for its template."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, TypedDict

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.urls import reverse

from reprocessing.admin.dashboard.addresses import Addresses
from reprocessing.admin.dashboard.dlq_row import DlqRow, RowState
from reprocessing.admin.dashboard.next_action import next_action
from reprocessing.admin.dashboard.sparkline import Sparkline, sparkline
from reprocessing.admin.dashboard.table_query import TableQuery
from reprocessing.admin.messages.readable_bytes import duration, visible
from reprocessing.models.safety import BreakerState

#: The columns of the table: name in the URL, title, and explanation of the title.
_TITLES: Final = (
    ("name", "DLQ", ""),
    ("state", "State", "mode of the DLQ, and its worst states"),
    ("depth", "In SQS", "messages in the DLQ, visible and in flight, as SQS last counted them"),
    ("review", "Needs review", "messages that need a person: parked, in a paused run, or unsent and in no active run"),
    ("progress", "In progress", "captured messages that are queued, being sent, or awaiting their outcome"),
    ("oldest", "Oldest", "age of the oldest message that is unfinished or parked"),
    ("expires", "Expires", "time until SQS deletes the first copy of an unfinished message"),
    ("trend", "24 h", "captured (bars) and delivered (line) messages per hour; sorted by captured messages"),
    ("rate", "Rate now", "messages sent per second in the last 10 s, and the rate that is allowed now"),
    ("breaker", "Circuit breaker", "circuit breakers of the DLQ's targets"),
    ("action", "Next action", ""),
)
#: The states that the table marks with a coloured word: state, word and colour, the worst first.
_CHIPS: Final = (
    (RowState.STOPPED, "stopped", "bad"), (RowState.PROBLEM, "problem", "bad"),
    (RowState.AWS, "redrive by AWS", "warm"), (RowState.PAUSED, "run paused", "warm"),
    (RowState.UNCAPTURED, "not captured", "warm"),
)  # fmt: skip
_CHIPS_SHOWN: Final = 2
#: Columns that do not show a number.
_TEXTS: Final = frozenset({"name", "state", "trend", "breaker", "action"})


@dataclass(frozen=True, slots=True)
class Header:
    """The title of a column, and the URL that sorts by the column.

    `order`: ascending or descending, if the table is sorted by this column; else empty.
    """

    title: str
    help: str
    address: str
    order: str
    is_number: bool


@dataclass(frozen=True, slots=True)
class Chip:
    """A coloured word that shows a state of a DLQ. `mood`: "bad" (urgent) or "warm" (a warning) sets the colour."""

    text: str
    mood: str


class TableRow(TypedDict):
    """The texts and URLs of one row of the table. An empty text means that there is no value.

    A dict, because a template reads a dict's values in half the time of an object's.
    """

    id: int
    name: str
    address: str
    mode: str
    chips: tuple[Chip, ...]
    depth: str
    review: str
    review_address: str
    progress: str
    oldest: str
    expires: str
    is_expiring: bool
    trend: Sparkline | None
    rate: str
    allowed: str
    breaker: str
    breaker_not_closed: bool
    action: str
    action_address: str


def headers(query: TableQuery) -> list[Header]:
    """Return the title of each column, with the URL that sorts by it. `query`: the current filter and order."""
    here = reverse("admin:index")
    sorted_by = query.sort.removeprefix("-")
    order = "descending" if query.sort.startswith("-") else "ascending"
    return [
        Header(
            title, explained, f"{here}?{query.sorted_by(name).text}#dlqs", order if name == sorted_by else "",
            name not in _TEXTS,
        )
        for name, title, explained in _TITLES
    ]  # fmt: skip


def table_rows(found: Sequence[DlqRow], user: AbstractBaseUser | AnonymousUser) -> list[TableRow]:
    """Return the rows of these DLQs, which are on one page of the table, for this person."""
    addresses = Addresses()
    return [_row(row, addresses, user) for row in found]


def _row(row: DlqRow, addresses: Addresses, user: AbstractBaseUser | AnonymousUser) -> TableRow:
    address = addresses.of("board_dlq", row.status.id)
    is_parked = row.review == row.counts.parked
    review = addresses.parked(row.status.id) if is_parked else address
    action = next_action(row, user, addresses)
    return TableRow(
        id=row.status.id, name=visible(row.status.name), address=address, mode=row.status.mode,
        chips=_chips(row), depth="" if row.depth is None else f"{row.depth:,}",
        review=_number(row.review, is_lower_bound=row.is_review_lower_bound), review_address=review,
        progress=_number(row.progress, is_lower_bound=row.is_progress_lower_bound),
        oldest=_lasting(row.age), expires=_lasting(row.left),
        is_expiring=RowState.EXPIRING in row.states, trend=sparkline(row.trend), rate=_rate(row),
        allowed=_allowed(row), breaker=_breaker(row), breaker_not_closed=bool(row.not_closed),
        action=action.label, action_address=action.address,
    )  # fmt: skip


def _chips(row: DlqRow) -> tuple[Chip, ...]:
    """Return a `Chip` for each of the DLQ's two worst states, and one such as "+2" if the DLQ has more states."""
    found = [Chip(text, mood) for state, text, mood in _CHIPS if state in row.states]
    more = len(found) - _CHIPS_SHOWN
    return (*found[:_CHIPS_SHOWN], *((Chip(f"+{more}", "warm"),) if more > 0 else ()))


def _number(n: int, *, is_lower_bound: bool) -> str:
    return f"{n:,}{'+' if is_lower_bound else ''}" if n else ""


def _lasting(seconds: float | None) -> str:
    return "" if seconds is None else duration(timedelta(seconds=max(seconds, 0)))


def _rate(row: DlqRow) -> str:
    rate = row.rate
    if not rate and row.breakers and row.allowed == 0:
        return ""  # the words "only canaries" say it
    return f"{rate:,.0f}" if rate >= 10 or not rate else f"{rate:.1f}"  # noqa: PLR2004  one digit is enough


def _allowed(row: DlqRow) -> str:
    if not row.breakers:
        return "no target"
    if row.allowed is None:
        return "no limit"
    return "only canaries" if not row.allowed else f"of {row.allowed:,g}/s"


def _breaker(row: DlqRow) -> str:
    if not row.breakers:
        return ""
    if not row.not_closed:
        return "closed"
    word = "open" if row.not_closed[0].state == BreakerState.OPEN else "half open"
    return word if len(row.breakers) == 1 else f"{len(row.not_closed)} of {len(row.breakers)} {word}"
