"""Messages by outcome and hour, for the dashboard's chart and its table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBadRequest, JsonResponse
from django.views.decorators.http import require_safe

from reprocessing.admin.site import visible_rows
from reprocessing.domain.lifecycle import LetterState
from reprocessing.store.dlqs.visible_dlqs import EVERY_DLQ, VisibleDlqs
from reprocessing.store.maintenance import counters
from reprocessing.store.maintenance.counters import CountInHour
from reprocessing.store.ordering import lanes

#: Number of hours shown, including the current hour.
HOURS: Final = 24
#: Kinds of events that the chart counts, and their labels.
KINDS: Final = {
    "captured": "captured",
    LetterState.DELIVERED.value: "delivered",
    "failed": "failed again",
    LetterState.PARKED.value: "parked",
    LetterState.DISCARDED.value: "discarded",
}


@dataclass(frozen=True, slots=True)
class HourCounts:
    """The start of an hour, and a count for each kind of event, in the order of `KINDS`."""

    hour: datetime
    counts: tuple[int, ...]


def hourly_counts(now: datetime, dlq: int | None = None, *, seen: VisibleDlqs = EVERY_DLQ) -> list[HourCounts]:
    """Return the counts of the last `HOURS` hours, oldest first; hours without messages have zeros."""
    first = now.replace(minute=0, second=0, microsecond=0) - timedelta(hours=HOURS - 1)
    found = _counted(counters.counts_by_hour(HOURS, dlq, seen=seen))
    hours = [first + timedelta(hours=number) for number in range(HOURS)]
    return [HourCounts(hour, tuple(found.get((hour, kind), 0) for kind in KINDS)) for hour in hours]


def table_context(now: datetime, seen: VisibleDlqs) -> dict[str, Any]:
    """Return the template context of the table."""
    told = hourly_counts(now, seen=seen)
    is_empty = not any(any(line.counts) for line in told)
    return {"flow": list(reversed(told)), "flow_kinds": list(KINDS.values()), "flow_is_none": is_empty}


@require_safe
def page(request: HttpRequest) -> HttpResponse:
    """Return the hours as JSON for the chart: Unix times in seconds, and a list of counts for each kind."""
    if not request.user.has_perm("reprocessing.view_deadletterqueue"):
        raise PermissionDenied
    asked = request.GET.get("dlq", "")
    if asked and not (asked.isascii() and asked.isdigit() and len(asked) < 19):  # noqa: PLR2004  digits of a bigint
        return HttpResponseBadRequest("dlq must be the number of a DLQ.")
    seen = visible_rows.of(request)
    if asked and not seen.includes(int(asked)):
        raise Http404
    told = hourly_counts(lanes.database_now(), int(asked) if asked else None, seen=seen)
    return JsonResponse(
        {
            "hours": [int(line.hour.timestamp()) for line in told],
            "kinds": list(KINDS.values()),
            "counts": [list(counts) for counts in zip(*(line.counts for line in told), strict=True)],
        }
    )


def _counted(found: Iterable[CountInHour]) -> dict[tuple[datetime, str], int]:
    counted: dict[tuple[datetime, str], int] = {}
    for hour in found:
        counted[hour.hour, hour.what] = counted.get((hour.hour, hour.what), 0) + hour.n
    return counted
