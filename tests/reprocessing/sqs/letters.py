"""Letters to send, and what the queue then holds."""

from __future__ import annotations

from reprocessing import sqs
from reprocessing.domain.envelope import Arrival, Attributes, Departure
from reprocessing.sqs import Outcomes, QueueAddress


def letter(
    attempt: int, body: str | bytes | None = None, attributes: Attributes | None = None, group: str | None = None
) -> Departure:
    """A letter whose body is its attempt's number, unless told otherwise."""
    content = str(attempt) if body is None else body
    return Departure(
        attempt=attempt,
        body=content.encode() if isinstance(content, str) else content,
        attributes=attributes or {},
        group_id=group,
        deduplication_id=None if group is None else f"attempt-{attempt}",
    )


def send(address: QueueAddress, *departures: Departure) -> Outcomes:
    return sqs.send(address, departures, may_start=lambda: True)


def arrivals(address: QueueAddress) -> list[Arrival]:
    """All that can be received at the moment, in order."""
    found: list[Arrival] = []
    while some := sqs.receive(address, wait=0, visibility=30):
        found += some
    return found
