"""Open incidents, to notify people, for new or reopened failure groups (messages that failed for the same reason)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, LiteralString

from reprocessing.domain.notifications.event import Event, EventKind
from reprocessing.domain.notifications.subjects import of_group
from reprocessing.store import rows
from reprocessing.store.maintenance import counters
from reprocessing.store.notifications.outbox import announce

_NAMES: Final[LiteralString] = """
SELECT g.id, coalesce(nullif(g.name, ''), g.title) AS title, d.name AS dlq
  FROM redrive_failure_group g JOIN redrive_dlq d ON d.id = g.dlq_id
 WHERE g.id = ANY(%(groups)b::bigint[])
"""
_UNFINISHED: Final = frozenset({"captured", "waiting", "sending", "awaiting", "parked"})


@dataclass(frozen=True, slots=True)
class MovedGroup:
    """A failure group that is new, or (`new` is false) a resolved group that was reopened by a new failure."""

    group_id: int
    dlq_id: int
    new: bool


@dataclass(frozen=True, slots=True)
class _Named:
    id: int
    title: str
    dlq: str


def announce_groups(groups: Collection[MovedGroup]) -> None:
    """Open an incident, to notify people, for each of these groups.

    Call it in the transaction that changes the groups.
    """
    if not groups:
        return
    found = rows.fetch(_Named, _NAMES, {"groups": [group.group_id for group in groups]})
    names = {named.id: named for named in found}
    announce([_event(group, names[group.group_id]) for group in groups])


def unfinished_messages(groups: Collection[int]) -> dict[int, int]:
    """Return how many unfinished or parked messages each of these failure groups has now, by group id."""
    found = dict.fromkeys(groups, 0)
    for counted in counters.counts_in_groups(list(groups)) if groups else ():
        if counted.state in _UNFINISHED:
            found[counted.group_id] += counted.n
    return found


def _event(group: MovedGroup, named: _Named) -> Event:
    kind = EventKind.FAILURE_GROUP_NEW if group.new else EventKind.FAILURE_GROUP_REOPENED
    facts: dict[str, str | int | float] = {"group_id": group.group_id, "dlq": named.dlq, "title": named.title}
    return Event(kind, of_group(group.group_id), facts, dlq_id=group.dlq_id)
