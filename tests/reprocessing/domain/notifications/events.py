"""An event of every kind, with all its facts."""

from __future__ import annotations

from typing import Any

from reprocessing.domain.notifications.event import FACTS, Event, EventKind

NAMES = frozenset({"target", "run", "dlq", "queue", "why", "by", "finding", "backup_time", "title"})


def event(kind: EventKind, subject: str = "one", *, optional: bool = True, dlq_id: int | None = None,
          **facts: Any) -> Event:  # noqa: ANN401  # fmt: skip
    """Return an event of this kind; a fact is its own name, or 7."""
    needed, useful = FACTS[kind]
    names = needed | (useful if optional else frozenset())
    made: dict[str, str | int | float] = {name: f"the-{name}" if name in NAMES else 7 for name in names}
    return Event(kind, subject, made | facts, dlq_id=dlq_id)
