"""Announce events and conclude incidents, in one transaction."""

from __future__ import annotations

from collections.abc import Collection

from reprocessing.domain.notifications.event import Event, EventKind
from reprocessing.store import rows
from reprocessing.store.notifications.outbox import announce, conclude


def record(found: Collection[Event], over: Collection[tuple[EventKind, str]]) -> None:
    """Announce the events, and conclude the incidents that are over. Commits by itself."""

    def write() -> None:
        announce(found)
        conclude(over)

    if found or over:
        rows.whole(write)
