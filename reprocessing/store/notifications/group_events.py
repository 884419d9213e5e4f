"""Announce failure groups that are new or reopened, in the transaction that puts messages into groups."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, LiteralString

from reprocessing.domain.notifications.event import Event, EventKind
from reprocessing.domain.notifications.subjects import of_group
from reprocessing.store import rows
from reprocessing.store.notifications.outbox import announce

_NAMES: Final[LiteralString] = "SELECT id, name FROM redrive_dlq WHERE id = ANY(%(dlqs)b::bigint[])"


@dataclass(frozen=True, slots=True)
class MovedGroup:
    """A failure group that is new, or else (`new` is false) was resolved and has been reopened."""

    group_id: int
    dlq_id: int
    new: bool


@dataclass(frozen=True, slots=True)
class _Dlq:
    id: int
    name: str


def announce_groups(groups: Collection[MovedGroup]) -> None:
    """Announce these groups: two statements, or none without any. In a transaction of the caller's."""
    if not groups:
        return
    dlqs = {dlq.id: dlq.name for dlq in rows.fetch(_Dlq, _NAMES, {"dlqs": [group.dlq_id for group in groups]})}
    announce([_event(group, dlqs[group.dlq_id]) for group in groups])


def _event(group: MovedGroup, dlq: str) -> Event:
    kind = EventKind.FAILURE_GROUP_NEW if group.new else EventKind.FAILURE_GROUP_REOPENED
    return Event(kind, of_group(group.group_id), {"group_id": group.group_id, "dlq": dlq}, dlq_id=group.dlq_id)
