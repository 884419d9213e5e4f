"""Show which events are sent to which destination. Warn of a destination without URL, or an event nobody gets."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from reprocessing.domain.notifications.destination import Destination
from reprocessing.domain.notifications.event import EventKind
from reprocessing.store.notifications.routes import Route


def variable(destination: str) -> str:
    """Return the name of the environment variable that holds a destination's URL."""
    return f"REDRIVE_NOTIFY_{destination.upper().replace('-', '_')}"


def route_text(route: Route) -> str:
    """Return a line that says which events of which DLQs are sent to a destination."""
    events = ", ".join(kind.value for kind in route.kinds) or "all events"
    dlqs = f"for DLQ {', '.join(route.dlqs)}" if route.dlqs else "for all DLQs and the service itself"
    return f"{route.destination}: {events}, {dlqs}"


def as_json(route: Route) -> dict[str, Any]:
    """Return as JSON which events of which DLQs are sent to a destination. An empty list stands for all."""
    return {"destination": route.destination, "events": [kind.value for kind in route.kinds], "dlqs": list(route.dlqs)}


def without_url(destination: str, known: Mapping[str, Destination]) -> str:
    """Return a warning if this process has no URL for the destination, else an empty text.

    `known` has, by name, the destinations whose URLs are in the environment variables of this process.
    """
    if destination in known:
        return ""
    there_are = f"It has: {', '.join(sorted(known))}." if known else "It has none."
    return (
        f"This process has no URL for {destination}, so nothing can be sent there. {there_are} "
        f"Set {variable(destination)} for workers and commands."
    )


def events_without_route_warning(kinds: Collection[EventKind]) -> str:
    """Return a warning that no destination gets these events of all DLQs, or an empty text if `kinds` is empty."""
    if not kinds:
        return ""
    if len(kinds) == len(EventKind):
        return "No destination gets the events of all DLQs and of the service itself."
    return f"No destination gets these events for all DLQs: {', '.join(kind.value for kind in kinds)}."
