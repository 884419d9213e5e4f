"""How notifications are told on a console."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from reprocessing.domain.notifications.destination import Destination
from reprocessing.domain.notifications.event import EventKind
from reprocessing.store.notifications.routes import Route


def variable(destination: str) -> str:
    """The variable of the environment that has a destination's URL."""
    return f"REDRIVE_NOTIFY_{destination.upper().replace('-', '_')}"


def told(route: Route) -> str:
    """What goes to a destination, in one line."""
    events = ", ".join(kind.value for kind in route.kinds) or "every event"
    dlqs = f"of {', '.join(route.dlqs)}" if route.dlqs else "of every DLQ, and of the service as a whole"
    return f"{route.destination}: {events}, {dlqs}"


def as_json(route: Route) -> dict[str, Any]:
    """A route for a program; no event, or no DLQ, is every one."""
    return {"destination": route.destination, "events": [kind.value for kind in route.kinds], "dlqs": list(route.dlqs)}


def without_url(destination: str, known: Mapping[str, Destination]) -> str:
    """That this process has no URL for a destination; empty where it has one."""
    if destination in known:
        return ""
    there_are = f"It has: {', '.join(sorted(known))}." if known else "It has none."
    return (
        f"This process has no URL for {destination}, so nothing can be sent there. {there_are} "
        f"Set {variable(destination)} for workers and commands."
    )


def unheard(kinds: Collection[EventKind]) -> str:
    """Which events reach nobody, or not from everywhere."""
    if not kinds:
        return ""
    if len(kinds) == len(EventKind):
        return "No destination takes the events of every DLQ and of the service as a whole."
    return f"No destination takes these events from everywhere: {', '.join(kind.value for kind in kinds)}."
