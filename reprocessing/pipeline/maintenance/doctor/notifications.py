"""Check notifications: are destinations set, and does sending to them work?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from reprocessing.conf import Conf
from reprocessing.domain.maintenance.findings import (
    DoctorFinding,
    error_finding,
    note_finding,
    ok_finding,
    warning_finding,
)
from reprocessing.domain.notifications.destination import AppriseService
from reprocessing.domain.notifications.event import EventKind
from reprocessing.gateways.notifiers import apprise_process
from reprocessing.models import NotificationRoute
from reprocessing.store.notifications import routes, sending

_WHERE: Final = "notifications"
_READING: Final = 5.0  #: seconds that Apprise may take to parse a URL


def findings(conf: Conf) -> Iterator[DoctorFinding]:
    """Yield findings about the destinations of notifications, and about events of which no destination is notified.

    Raises:
        django.db.Error: PostgreSQL does not answer.
    """
    rows = list(NotificationRoute.objects.order_by("destination").prefetch_related("dlqs"))
    if not rows:
        cure = "Set REDRIVE_NOTIFY_OPS, then: manage.py set_notification ops --confirm (docs/notifications.md)"
        why = "A run may pause and wait for a person, and nobody is notified."
        yield warning_finding(_WHERE, "No destination gets notifications.", why, cure)
        return
    for row in rows:
        yield from _of_destination(row, conf)
    if unheard := routes.events_without_route([routes.read_route(row) for row in rows]):
        yield note_finding(_WHERE, f"No destination gets these events for all DLQs: {_listed(unheard)}.",
                   "manage.py set_notification NAME --confirm, without --events and --dlq")  # fmt: skip
    if lost := sending.given_up_lately():
        why = "They are not sent any more."
        yield warning_finding(
            _WHERE, f"Notifications given up in the last 24 hours: {lost:,}.", why, "manage.py list_notifications"
        )


def _of_destination(row: NotificationRoute, conf: Conf) -> Iterator[DoctorFinding]:
    name, destination = row.destination, conf.destinations.get(row.destination)
    test = f"manage.py test_notification {name}"
    if destination is None:
        variable = f"REDRIVE_NOTIFY_{name.upper().replace('-', '_')}"
        what = "This process has no URL for it, so nothing can be sent there."
        why = "If the workers have none either, nobody is notified there."
        yield error_finding(name, what, why, f"Set {variable} for workers and commands.")
    elif isinstance(destination, AppriseService) and (why := apprise_process.problem(destination, seconds=_READING)):
        yield error_finding(
            name, f"{why}.", "Nothing can be sent there.", f"Correct the URL (docs/notifications.md). Then: {test}"
        )
    elif row.failures:
        what = f"Failed attempts in a row: {row.failures:,}. Reason: {row.last_error}."
        yield warning_finding(name, what, "Sending is retried for a day, and then given up.", test)
    else:
        yield ok_finding(name, f"{destination.kind}.")


def _listed(kinds: Sequence[EventKind]) -> str:
    return "all of them" if len(kinds) == len(EventKind) else ", ".join(kind.value for kind in kinds)
