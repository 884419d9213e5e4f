"""Letters to send, and what the queue then holds."""

from __future__ import annotations

from reprocessing.domain.message.envelope import Attributes, OutgoingMessage, ReceivedMessage
from reprocessing.gateways import sqs
from reprocessing.gateways.sqs import Outcomes, QueueAddress
from tests.contract.endpoints import Answer, Sandbox
from tests.contract.queues import Queue


def letter(
    attempt: int, body: str | bytes | None = None, attributes: Attributes | None = None, group: str | None = None
) -> OutgoingMessage:
    """A letter whose body is its attempt's number, unless told otherwise."""
    content = str(attempt) if body is None else body
    return OutgoingMessage(
        attempt=attempt,
        body=content.encode() if isinstance(content, str) else content,
        attributes=attributes or {},
        group_id=group,
        deduplication_id=None if group is None else f"attempt-{attempt}",
    )


TEN = [letter(number) for number in range(10)]


def send(address: QueueAddress, *departures: OutgoingMessage) -> Outcomes:
    return sqs.send(address, departures, may_start=lambda: True)


def arrivals(address: QueueAddress) -> list[ReceivedMessage]:
    found: list[ReceivedMessage] = []
    while some := sqs.receive(address, wait=0, visibility=30):
        found += some
    return found


def requests(sandbox: Sandbox, queue: Queue) -> list[list[str]]:
    """The message ids that each request to the queue had accepted, in the order of the requests."""
    calls: list[Answer] = sandbox.calls(action="SendMessageBatch", queue=queue.name)
    return [[sent["message_id"] for sent in call["sent"] if sent["accepted"]] for call in calls]


def kinds(outcomes: Outcomes) -> dict[int, str]:
    return {attempt: type(outcome).__name__ for attempt, outcome in outcomes.items()}


def bodies(address: QueueAddress) -> list[str]:
    return [one.body.decode() for one in arrivals(address)]
