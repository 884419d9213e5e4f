"""Notifications: whether somebody is told, and whether it arrives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from reprocessing.conf import Conf
from reprocessing.domain.diagnosis import Remark, ill, note, warn, well
from reprocessing.domain.notifications.destination import AppriseService
from reprocessing.domain.notifications.event import EventKind
from reprocessing.models import NotificationRoute
from reprocessing.notifiers import apprise_process
from reprocessing.store.notifications import routes, sending

_WHERE: Final = "notifications"
_READING: Final = 5.0  #: seconds in which Apprise reads a URL


def remarks(conf: Conf) -> Iterator[Remark]:
    """What is to be said of destinations, and of what they are told.

    Raises:
        django.db.Error: PostgreSQL does not answer.
    """
    rows = list(NotificationRoute.objects.order_by("destination").prefetch_related("dlqs"))
    if not rows:
        cure = "Set REDRIVE_NOTIFY_OPS, then: manage.py set_notification ops --confirm (docs/notifications.md)"
        yield warn(
            _WHERE, "Nobody is told anything.", "The service may stop, and wait for a person who is not called.", cure
        )
        return
    for row in rows:
        yield from _of_destination(row, conf)
    if unheard := routes.events_without_route([routes.read_route(row) for row in rows]):
        yield note(_WHERE, f"These events do not reach anybody from everywhere: {_listed(unheard)}.",
                   "manage.py set_notification NAME --confirm, without --events and --dlq")  # fmt: skip
    if lost := sending.given_up_lately():
        why = "People were not told of it, and will not be."
        yield warn(
            _WHERE, f"Notifications that were given up within a day: {lost:,}.", why, "manage.py list_notifications"
        )


def _of_destination(row: NotificationRoute, conf: Conf) -> Iterator[Remark]:
    name, destination = row.destination, conf.destinations.get(row.destination)
    test = f"manage.py test_notification {name}"
    if destination is None:
        variable = f"REDRIVE_NOTIFY_{name.upper().replace('-', '_')}"
        what = "This process has no URL for it, so nothing can be sent there."
        yield ill(
            name, what, "If workers have none either, nobody is told.", f"Set {variable} for workers and commands."
        )
    elif isinstance(destination, AppriseService) and (why := apprise_process.problem(destination, seconds=_READING)):
        yield ill(
            name, f"{why}.", "Nothing can be sent there.", f"Correct the URL (docs/notifications.md). Then: {test}"
        )
    elif row.failures:
        what = f"The last {row.failures:,} texts could not be sent: {row.trouble}."
        yield warn(name, what, "It is tried again for a day, and then given up.", test)
    else:
        yield well(name, f"{destination.kind}.")


def _listed(kinds: Sequence[EventKind]) -> str:
    return "all of them" if len(kinds) == len(EventKind) else ", ".join(kind.value for kind in kinds)
