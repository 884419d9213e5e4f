"""Find stalled lanes: their messages could be sent, but no worker sends them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from reprocessing.domain.maintenance.findings import DoctorFinding, error_finding, ok_finding
from reprocessing.models import DeadLetterQueue
from reprocessing.store.ordering import stalled_lanes
from reprocessing.store.ordering.stalled_lanes import StalledLanes

_LONG: Final = 900.0  #: a lane is stalled if it is due for so many seconds, while nothing is sent to its target
_LOST: Final = 60.0  #: a lane is stalled, too, so many seconds after its lease ended; workers lease it within 15 s


def findings(names: Sequence[str]) -> Iterator[DoctorFinding]:
    """Yield findings about stalled lanes. `names`: only of the DLQs with these names; empty: of all DLQs."""
    dlqs = list(DeadLetterQueue.objects.filter(name__in=names).values_list("pk", flat=True)) if names else None
    found = stalled_lanes.find_stalled(dlqs, long=_LONG, lost=_LOST)
    yield from map(_said, found)
    if not found:
        yield ok_finding("key queues", "none is stalled.")


def _said(found: StalledLanes) -> DoctorFinding:
    look = f"manage.py redrive_status {found.dlq}"
    since = f" since {found.since:%Y-%m-%d %H:%M:%S} UTC" if found.since else ""
    match found.how:
        case "overdue":
            what = (
                f"Key queues that nothing holds are due{since}, and nothing was sent meanwhile. At least: {found.n:,}."
            )
            cure = f"See that beat and workers consume (above), then {look}. In a hurry: manage.py rerun RUN --confirm"
        case "abandoned":
            what = (
                f"Workers that are gone have leased key queues; the leases ended{since}, and nobody took over: "
                f"{found.n:,}."
            )
            cure = f"Restart the workers: they take such key queues first. Then {look}"
        case "blocked":
            what = (
                f"Key queues begin with a message of a run that has ended, due{since}, and messages of a running run "
                f"wait behind it. At least: {found.n:,}."
            )
            cure = f"manage.py show_runs {found.dlq} names the runs. For what to do: manage.py rerun RUN, a dry run."
        case _:
            what = f"Key queues are held, although none of their messages is parked or held by a rule: {found.n:,}."
            cure = f"{look} names them. Each continues with the next message of its key. Report this as a bug."
    return error_finding(found.dlq, what, "Their messages wait for ever.", cure)
