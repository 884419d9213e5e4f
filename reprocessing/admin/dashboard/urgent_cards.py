"""The dashboard's cards of urgent problems: one card for each kind of problem, with names of DLQs that have it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final
from urllib.parse import urlencode

from django.contrib.auth.models import PermissionsMixin
from django.http import HttpRequest
from django.urls import reverse

from reprocessing.admin.dashboard.dlq_row import DlqRow, RowState
from reprocessing.admin.messages.readable_bytes import duration
from reprocessing.admin.site import visible_rows
from reprocessing.domain.notifications.event import EventKind
from reprocessing.domain.runs.forecast import duration_in_words
from reprocessing.models import BreakerState, Incident

_NAMED: Final = 3  # max DLQs or findings that a card names
_CUT: Final = 160  # max characters of a text on a card


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a card: a DLQ that has the problem, the URL of its page, and a text about the problem."""

    name: str
    address: str
    text: str


@dataclass(frozen=True, slots=True)
class UrgentCard:
    """A card about one kind of problem.

    Attributes:
        first: the first DLQ with the problem, shown with its text.
        others: further DLQs, of which only the names are shown.
        more: number of DLQs that the card does not name.
        address: URL of the list of all DLQs with the problem; for errors of redrive_doctor, of the list of errors.
        mood: "bad" (urgent) or "warm". It sets the colour of the card.
        advice: a command that shows more about the problem; empty: there is no command.
    """

    title: str
    first: Line
    others: tuple[Line, ...]
    more: int
    address: str
    mood: str
    advice: str = ""

    @property
    def count(self) -> int:
        """Return the number of DLQs with the problem, or of errors that redrive_doctor found."""
        return 1 + len(self.others) + self.more


def urgent_cards(found: Sequence[DlqRow], request: HttpRequest) -> list[UrgentCard]:
    """Return the cards about problems of these DLQs, the most urgent first, then errors of redrive_doctor."""
    return [*_cards(found), *_findings(request)]


def _cards(found: Sequence[DlqRow]) -> Iterator[UrgentCard]:
    kinds: tuple[tuple[RowState, str, str, Callable[[DlqRow], str]], ...] = (
        (RowState.STOPPED, "Stopped", "bad", _stop),
        (RowState.BREAKER, f"Circuit breaker {_breaker_states(found)}", "bad", _breaker),
        (RowState.EXPIRING, "Expires within 24 h", "bad", _expiry),
        (RowState.PROBLEM, "Problem", "bad", lambda row: row.status.last_error),
        (RowState.AWS, "Redrive by AWS", "warm", lambda row: row.status.native),
        (RowState.UNCAPTURED, "Not captured", "warm", _uncaptured),
    )
    for state, title, mood, text in kinds:
        hit = sorted((row for row in found if state in row.states), key=_first(state))
        if hit:
            first = Line(f"DLQ {hit[0].status.name}", _page(hit[0]), _short(text(hit[0])))
            others = tuple(Line(row.status.name, _page(row), "") for row in hit[1:_NAMED])
            address = f"{reverse('admin:index')}?{urlencode({'state': state})}#dlqs"
            yield UrgentCard(title, first, others, max(0, len(hit) - _NAMED), address, mood)


def _first(state: RowState) -> Callable[[DlqRow], tuple[float, str]]:
    if state is RowState.EXPIRING:
        return lambda row: (row.left or 0, row.status.name)
    return lambda row: (-(row.review + row.uncaptured), row.status.name)


def _stop(row: DlqRow) -> str:
    at = f"{row.status.stopped_at:%Y-%m-%d %H:%M}"
    return f"by {row.status.stopped_by} since {at} UTC: {row.status.stop_reason}"


def _breaker(row: DlqRow) -> str:
    first, more = row.not_closed[0], len(row.not_closed) - 1
    others = f", and {more} more" if more else ""
    why = f": {first.why}" if first.why else ""
    return f"circuit breaker of target {first.name} is {first.state.replace('_', ' ')}{others}{why}"


def _breaker_states(found: Sequence[DlqRow]) -> str:
    """Return which states the circuit breakers have that are not closed: "open", "half open", or both."""
    states = {breaker.state for row in found for breaker in row.not_closed}
    return " or ".join(
        state.replace("_", " ") for state in (BreakerState.OPEN, BreakerState.HALF_OPEN) if state in states
    )


def _expiry(row: DlqRow) -> str:
    return f"SQS deletes the first message in {duration(timedelta(seconds=max(row.left or 0, 0)))}"


def _uncaptured(row: DlqRow) -> str:
    kept = duration_in_words(row.status.retention)
    return f"{row.uncaptured:,} in SQS, deleted {kept} after they {'failed' if row.status.fifo else 'were first sent'}"


def _findings(request: HttpRequest) -> Iterator[UrgentCard]:
    """Yield one card with the errors that redrive_doctor found, if there are errors and this person may see them."""
    user = request.user
    if not (isinstance(user, PermissionsMixin) and user.has_perm("reprocessing.view_incident")):
        return
    open_now = visible_rows.rows(request, Incident.objects.filter(kind=EventKind.DOCTOR_WORSE, ended_at=None))
    incidents = list(open_now.select_related("dlq").order_by("-opened_at")[: 2 * _NAMED + 100])
    if not incidents:
        return
    lines = tuple(
        Line(
            incident.dlq.name if incident.dlq else "service",
            reverse("admin:board_dlq", args=[incident.dlq_id]) if incident.dlq_id else "",
            _short(visible_rows.without_hidden_names(request, str(incident.facts.get("finding", incident.subject)))),
        )
        for incident in incidents[:_NAMED]
    )
    address = f"{reverse('admin:reprocessing_incident_changelist')}?{urlencode({'kind': EventKind.DOCTOR_WORSE})}"
    yield UrgentCard(
        "Errors of redrive_doctor", lines[0], lines[1:], len(incidents) - len(lines), address, "bad",
        advice="manage.py redrive_doctor",
    )  # fmt: skip


def _page(row: DlqRow) -> str:
    return reverse("admin:board_dlq", args=[row.status.id])


def _short(text: str) -> str:
    return text if len(text) <= _CUT else f"{text[: _CUT - 1].rstrip()}…"
