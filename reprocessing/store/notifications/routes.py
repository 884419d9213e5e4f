"""Read and change notification routes: which events of which DLQs are sent to a destination. Changes are audited."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from django.db import transaction

from reprocessing.domain.errors import InvalidNotificationRoute
from reprocessing.domain.notifications.destination import is_name
from reprocessing.domain.notifications.event import EventKind
from reprocessing.models import DeadLetterQueue, NotificationRoute
from reprocessing.models.audit import AuditAct, AuditEntry


@dataclass(frozen=True, slots=True)
class Route:
    """A notification route. Empty kinds: all events; empty DLQs: the events of all DLQs and of the service itself."""

    destination: str
    kinds: tuple[EventKind, ...]
    dlqs: tuple[str, ...]

    def audit_values(self) -> dict[str, object]:
        """Return what the audit log records of this route: its destination, events and DLQs."""
        return {"notifications": self.destination, "events": [kind.value for kind in self.kinds] or "all",
                "dlqs": list(self.dlqs) or "all"}  # fmt: skip


def read_kinds(names: Sequence[str]) -> tuple[EventKind, ...]:
    """Return the events with these names, without repetitions; for "all", an empty tuple.

    Raises:
        InvalidNotificationRoute: there is no name, "all" is combined with other names, or a name is not an event; the
            message says what to type.
    """
    wanted = {name.strip() for name in names if name.strip()}
    if not wanted:
        raise InvalidNotificationRoute("No event is named. Type --events all for every event, or name some of them.")
    if wanted == {"all"}:
        return ()
    if "all" in wanted:
        some = " ".join(sorted(wanted - {"all"}))[:100]
        raise InvalidNotificationRoute(
            f'"all" cannot be combined with other events. Type --events all, or --events {some}'
        )
    if unknown := sorted(wanted - set(EventKind)):
        known = ", ".join(kind.value for kind in EventKind)
        raise InvalidNotificationRoute(f"There is no event {', '.join(unknown)[:100]}. There are: all, {known}.")
    return tuple(kind for kind in EventKind if kind in wanted)


def route_or_none(destination: str) -> Route | None:
    """Return the route of this destination; None: nothing is sent to it."""
    row = NotificationRoute.objects.filter(destination=destination).first()
    return None if row is None else read_route(row)


def find_route(destination: str) -> Route:
    """Return the route of this destination.

    Raises:
        InvalidNotificationRoute: there is no route; the message lists the destinations that have a route.
    """
    found = route_or_none(destination)
    if found is None:
        known = ", ".join(NotificationRoute.objects.order_by("destination").values_list("destination", flat=True))
        there_are = f"There are: {known}." if known else "Nothing is sent to any destination yet."
        raise InvalidNotificationRoute(f'Nothing is sent to a destination named "{destination}". {there_are}')
    return found


def read_route(row: NotificationRoute) -> Route:
    """Return the notification route that a row of the database stores."""
    return Route(
        row.destination, read_kinds(row.kinds or ["all"]), tuple(sorted(row.dlqs.values_list("name", flat=True)))
    )


def check_route(wanted: Route, planned: Collection[str] = ()) -> None:
    """Refuse a route that cannot be written. `planned`: names of DLQs that are to be added before the route.

    Raises:
        InvalidNotificationRoute: the destination's name is not allowed, or a DLQ does not exist.
    """
    if not is_name(wanted.destination):
        raise InvalidNotificationRoute(
            f'No destination can be named "{wanted.destination[:50]}". A name is lower case, digits and hyphens: '
            "the variable REDRIVE_NOTIFY_TEAM_A is the destination team-a."
        )
    known = {*planned, *DeadLetterQueue.objects.filter(name__in=wanted.dlqs).values_list("name", flat=True)}
    if missing := [name for name in wanted.dlqs if name not in known]:
        raise InvalidNotificationRoute(f'No DLQ is named "{missing[0]}". List the DLQs: manage.py redrive_status.')


def set_route(wanted: Route, *, by: str, reason: str) -> bool:
    """Write a route, in place of the destination's former route; return whether anything changed.

    Raises:
        InvalidNotificationRoute: `check_route` refuses the route.
    """
    with transaction.atomic():
        check_route(wanted)
        row, new = NotificationRoute.objects.select_for_update().get_or_create(destination=wanted.destination)
        before = None if new else read_route(row)
        if before == wanted:
            return False
        row.kinds = [kind.value for kind in wanted.kinds]
        row.save(update_fields=["kinds"])
        row.dlqs.set(DeadLetterQueue.objects.filter(name__in=wanted.dlqs))
        act = AuditAct.ADDED if before is None else AuditAct.CHANGED
        former = before.audit_values() if before else {}
        AuditEntry.objects.create(act=act, by=by, reason=reason, before=former, after=wanted.audit_values())
    return True


def remove_route(destination: str, *, by: str, reason: str) -> None:
    """Delete a route, and the pending notifications of its destination.

    Raises:
        InvalidNotificationRoute: the destination has no route.
    """
    with transaction.atomic():
        before = find_route(destination)
        NotificationRoute.objects.filter(destination=destination).delete()
        after = {"notifications": destination, "removed": True}
        AuditEntry.objects.create(act=AuditAct.CHANGED, by=by, reason=reason, before=before.audit_values(), after=after)


def events_without_route(routes: Collection[Route]) -> tuple[EventKind, ...]:
    """Return the events that no route for all DLQs includes. Routes for certain DLQs may include these events."""
    everywhere = [given for given in routes if not given.dlqs]
    return tuple(kind for kind in EventKind if not any(not given.kinds or kind in given.kinds for given in everywhere))
