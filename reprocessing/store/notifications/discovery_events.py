"""Notify people of DLQs that discovery found for the first time."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from reprocessing.domain.message.arn import read, resource_name
from reprocessing.domain.notifications.event import Event, EventKind
from reprocessing.domain.notifications.subjects import of_queue
from reprocessing.store.notifications.outbox import announce


@dataclass(frozen=True, slots=True)
class NewDlq:
    """A DLQ that is neither registered nor ignored, with its numbers of messages (None: not known) and sources."""

    arn: str
    messages: int | None
    sources: int


def announce_dlqs(found: Collection[NewDlq]) -> None:
    """Open an incident, to notify people, for each of these DLQs. Call it in the transaction that ends the scan."""
    announce([_event(dlq) for dlq in found])


def _event(dlq: NewDlq) -> Event:
    arn = read(dlq.arn)
    facts: dict[str, str | int | float] = {"queue": resource_name(dlq.arn), "sources": dlq.sources}
    if arn:
        facts |= {"account": arn.account, "region": arn.region}
    if dlq.messages is not None:
        facts["messages"] = dlq.messages
    return Event(EventKind.DLQ_DISCOVERED, of_queue(dlq.arn), facts)
