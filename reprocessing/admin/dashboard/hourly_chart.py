"""What letters came to, hour by hour: for the board's chart, and as a table for who has no chart."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest, JsonResponse
from django.views.decorators.http import require_safe

from reprocessing.domain.lifecycle import LetterState
from reprocessing.store.maintenance import counters
from reprocessing.store.maintenance.counters import Hour
from reprocessing.store.ordering import lanes

#: Hours that are told, the one that is not over yet among them.
HOURS: Final = 24
#: What is told of each hour, and in which words; in the order of a letter's life.
KINDS: Final = {
    "captured": "died",
    LetterState.DELIVERED.value: "delivered",
    "failed": "failed again",
    LetterState.PARKED.value: "parked",
    LetterState.DISCARDED.value: "discarded",
}


@dataclass(frozen=True, slots=True)
class Line:
    """One hour: when it began, and how many letters came to each kind, in the order of `KINDS`."""

    hour: datetime
    counts: tuple[int, ...]


def lines(now: datetime, dlq: int | None = None) -> list[Line]:
    """The last hours, the oldest first; those in which nothing happened, too."""
    first = now.replace(minute=0, second=0, microsecond=0) - timedelta(hours=HOURS - 1)
    found = _counted(counters.hours(HOURS, dlq))
    hours = [first + timedelta(hours=one) for one in range(HOURS)]
    return [Line(hour, tuple(found.get((hour, kind), 0) for kind in KINDS)) for hour in hours]


def page(request: HttpRequest) -> HttpResponse:
    """The last hours as JSON, for the chart: seconds since 1970, and a row of numbers for each kind."""
    return require_safe(_page)(request)


def of(now: datetime) -> dict[str, Any]:
    """What the board shows beneath its chart."""
    told = lines(now)
    return {"flow": list(reversed(told)), "flow_kinds": list(KINDS.values()), "flow_is_none": not _any(told)}


def _page(request: HttpRequest) -> HttpResponse:
    if not request.user.has_perm("reprocessing.view_deadletterqueue"):
        raise PermissionDenied
    asked = request.GET.get("dlq", "")
    if asked and not (asked.isascii() and asked.isdigit() and len(asked) < 19):  # noqa: PLR2004  digits of a bigint
        return HttpResponseBadRequest("A dlq is named by its number.")
    told = lines(lanes.clock(), int(asked) if asked else None)
    return JsonResponse(
        {
            "hours": [int(one.hour.timestamp()) for one in told],
            "kinds": list(KINDS.values()),
            "counts": [list(each) for each in zip(*(one.counts for one in told), strict=True)],
        }
    )


def _counted(found: Iterable[Hour]) -> dict[tuple[datetime, str], int]:
    counted: dict[tuple[datetime, str], int] = {}
    for one in found:
        counted[one.hour, one.what] = counted.get((one.hour, one.what), 0) + one.n
    return counted


def _any(told: Iterable[Line]) -> bool:
    return any(any(one.counts) for one in told)
