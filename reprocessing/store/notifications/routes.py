"""Which events, of which DLQs, go to a destination: written by a named person, with its entry in the audit log."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from django.db import transaction

from reprocessing.domain.errors import NotificationIsUnclear
from reprocessing.domain.notifications.destination import is_name
from reprocessing.domain.notifications.event import EventKind
from reprocessing.models import DeadLetterQueue, NotificationRoute
from reprocessing.models.review import Act, Review


@dataclass(frozen=True, slots=True)
class Route:
    """A route as it is wanted, or was. No kind: every event. No DLQ: every DLQ, and the service as a whole."""

    destination: str
    kinds: tuple[EventKind, ...]
    dlqs: tuple[str, ...]

    def told(self) -> dict[str, object]:
        """As the audit log records it."""
        return {"notifications": self.destination, "events": [kind.value for kind in self.kinds] or "all",
                "dlqs": list(self.dlqs) or "all"}  # fmt: skip


def read_kinds(names: Sequence[str]) -> tuple[EventKind, ...]:
    """The events of these names, each once, in the order of the table; "all" is none of them.

    Raises:
        NotificationIsUnclear: there is none of this name; it names those there are.
    """
    wanted = {name.strip() for name in names if name.strip()} - {"all"}
    if unknown := sorted(wanted - set(EventKind)):
        known = ", ".join(kind.value for kind in EventKind)
        raise NotificationIsUnclear(f"There is no event {', '.join(unknown)[:100]}. There are: all, {known}.")
    return tuple(kind for kind in EventKind if kind in wanted)


def route(destination: str) -> Route | None:
    """The route of this destination, as it is now."""
    row = NotificationRoute.objects.filter(destination=destination).first()
    return None if row is None else read_route(row)


def find_route(destination: str) -> Route:
    """The route of this destination.

    Raises:
        NotificationIsUnclear: there is none; it names those there are.
    """
    found = route(destination)
    if found is None:
        known = ", ".join(NotificationRoute.objects.order_by("destination").values_list("destination", flat=True))
        there_are = (
            f"There are: {known}."
            if known
            else "Nothing is sent to any destination yet. Set one: manage.py set_notification NAME --confirm."
        )
        raise NotificationIsUnclear(f'Nothing is sent to a destination named "{destination}". {there_are}')
    return found


def read_route(row: NotificationRoute) -> Route:
    """What a row says."""
    return Route(row.destination, read_kinds(row.kinds), tuple(sorted(row.dlqs.values_list("name", flat=True))))


def check(wanted: Route) -> None:
    """Whether a route can be written.

    Raises:
        NotificationIsUnclear: its destination can have no such name, or a DLQ is not there.
    """
    if not is_name(wanted.destination):
        raise NotificationIsUnclear(
            f'No destination can be named "{wanted.destination[:50]}". A name is lower case, digits and hyphens: '
            "the variable REDRIVE_NOTIFY_TEAM_A is the destination team-a."
        )
    known = set(DeadLetterQueue.objects.filter(name__in=wanted.dlqs).values_list("name", flat=True))
    if missing := [name for name in wanted.dlqs if name not in known]:
        raise NotificationIsUnclear(f'No DLQ is named "{missing[0]}". See redrive_status for those there are.')


def set_route(wanted: Route, *, by: str, reason: str) -> bool:
    """Write a route, in place of the one there is; whether anything changed.

    Raises:
        NotificationIsUnclear: as `check`.
    """
    with transaction.atomic():
        check(wanted)
        row, new = NotificationRoute.objects.select_for_update().get_or_create(destination=wanted.destination)
        before = None if new else read_route(row)
        if before == wanted:
            return False
        row.kinds = [kind.value for kind in wanted.kinds]
        row.save(update_fields=["kinds"])
        row.dlqs.set(DeadLetterQueue.objects.filter(name__in=wanted.dlqs))
        act = Act.ADDED if before is None else Act.CHANGED
        told = before.told() if before else {}
        Review.objects.create(act=act, by=by, reason=reason, before=told, after=wanted.told())
    return True


def remove_route(destination: str, *, by: str, reason: str) -> None:
    """Delete a route, and what was owed to its destination.

    Raises:
        NotificationIsUnclear: there is none.
    """
    with transaction.atomic():
        before = find_route(destination)
        NotificationRoute.objects.filter(destination=destination).delete()
        after = {"notifications": destination, "removed": True}
        Review.objects.create(act=Act.CHANGED, by=by, reason=reason, before=before.told(), after=after)


def events_without_route(routes: Collection[Route]) -> tuple[EventKind, ...]:
    """The events that reach nobody for some DLQ, or for the service as a whole."""
    everywhere = [one for one in routes if not one.dlqs]
    return tuple(kind for kind in EventKind if not any(not one.kinds or kind in one.kinds for one in everywhere))
