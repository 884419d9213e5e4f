"""Publish letters to an SNS topic or an EventBridge bus, which passes them to all its subscribers or rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from reprocessing.domain.message.envelope import OutgoingMessage
from reprocessing.domain.replay.verdicts import Outcome, Refused, Taken, Unknown
from reprocessing.domain.sources.eventbridge_event import Event
from reprocessing.domain.sources.sns_notification import Publication
from reprocessing.gateways.aws.clients import eventbridge_client, sns_client
from reprocessing.gateways.aws.errors import outcome_of_entry
from reprocessing.gateways.aws.queue_address import region_of
from reprocessing.gateways.aws.request_threads import THREADS
from reprocessing.gateways.sqs.batch_requests import BatchSender, Outcomes, send_chains
from reprocessing.gateways.sqs.batches import PackedMessage, batch_chains, pack, to_aws_attributes

#: Most bytes of one request: https://docs.aws.amazon.com/sns/latest/api/API_PublishBatch.html, and
#: https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_PutEvents.html. A larger letter is
#: sent alone, and SNS or EventBridge decides whether to accept it.
LARGEST: Final = 262_144
_FIFO: Final = ".fifo"


@dataclass(frozen=True, slots=True)
class _Put:
    """An event as it is sent to EventBridge. `detail`: the content as text. `size`: in bytes."""

    event: Event
    detail: str
    size: int

    @property
    def attempt(self) -> int:
        return self.event.attempt

    @property
    def group(self) -> str | None:
        """Return None, because a bus has no message groups."""
        return None

    def entry(self, bus: str) -> dict[str, Any]:
        event = self.event
        rest = {"Time": event.time, "TraceHeader": event.trace_header}
        return {
            "EventBusName": bus,
            "Source": event.source,
            "DetailType": event.detail_type,
            "Detail": self.detail,
            "Resources": list(event.resources),
            **{name: value for name, value in rest.items() if value is not None},
        }


def publish(
    topic: str, publications: Iterable[Publication], *, may_start: Callable[[], bool], role: str = ""
) -> Outcomes:
    """Publish letters to the topic with this ARN, ten in a request. Return the outcomes by attempt id.

    On a FIFO topic, letters of one message group are sent in the given order. If a letter was not accepted, later
    letters of its group are not sent. SNS refuses letters that have attributes of types that it does not know.

    Raises:
        QueueUnreachable: `topic` is not an ARN. Failures of SNS or of the network are returned as outcomes.
    """
    fifo = topic.endswith(_FIFO)
    region = region_of(topic)
    outcomes: Outcomes = {}
    ready: list[PackedMessage] = []
    subjects: dict[int, str] = {}
    for publication in publications:
        message = OutgoingMessage(
            publication.attempt, publication.message, publication.attributes, publication.group_id,
            publication.deduplication_id,
        )  # fmt: skip
        made = pack(message, fifo=fifo)
        if isinstance(made, Refused):
            outcomes[publication.attempt] = made
            continue
        ready.append(made)
        if publication.subject:
            subjects[publication.attempt] = publication.subject

    def ask(load: list[PackedMessage]) -> list[Outcome]:
        entries = [_entry(letter, number, subjects, fifo=fifo) for number, letter in enumerate(load)]
        answer = sns_client(region, role).publish_batch(TopicArn=topic, PublishBatchRequestEntries=entries)
        return _published(answer, len(load))

    packed = batch_chains(ready, fifo=fifo, space=LARGEST)
    return outcomes | send_chains(packed, BatchSender(ask, "SNS", fifo), may_start=may_start, threads=THREADS)


def put(bus: str, events: Iterable[Event], *, may_start: Callable[[], bool], role: str = "") -> Outcomes:
    """Put events on the bus with this ARN, ten in a request. Return the outcomes by attempt id.

    EventBridge refuses an event whose source begins with "aws.", because AWS reserves these names. The letter of a
    refused event is parked without a retry.

    Raises:
        QueueUnreachable: `bus` is not an ARN. Failures of EventBridge or of the network are returned as outcomes.
    """
    region = region_of(bus)
    ready = [_Put(event, event.detail.decode(), event.size) for event in events]

    def ask(load: list[_Put]) -> list[Outcome]:
        entries = [ready_event.entry(bus) for ready_event in load]
        return _taken(eventbridge_client(region, role).put_events(Entries=entries), len(load))

    packed = batch_chains(ready, fifo=False, space=LARGEST - 1)  # EventBridge refuses a request of exactly LARGEST
    return send_chains(packed, BatchSender(ask, "EventBridge", fifo=False), may_start=may_start, threads=THREADS)


def _entry(letter: PackedMessage, number: int, subjects: Mapping[int, str], *, fifo: bool) -> dict[str, Any]:
    message = letter.message
    entry: dict[str, Any] = {"Id": str(number), "Message": letter.text}
    if message.attributes:
        entry["MessageAttributes"] = to_aws_attributes(message.attributes)
    if subject := subjects.get(letter.attempt):
        entry["Subject"] = subject
    if fifo:
        entry["MessageGroupId"] = message.group_id
        if message.deduplication_id is not None:
            entry["MessageDeduplicationId"] = message.deduplication_id
    return entry


def _published(answer: Mapping[str, Any], many: int) -> list[Outcome]:
    outcomes: dict[str, Outcome] = {entry["Id"]: Taken(entry["MessageId"]) for entry in answer.get("Successful", [])}
    for entry in answer.get("Failed", []):
        said = outcome_of_entry(entry.get("Code", ""), entry.get("Message", ""), "SNS")
        outcomes[entry["Id"]] = Unknown("SNS names it as taken and as failed") if entry["Id"] in outcomes else said
    return [outcomes.get(str(number), Unknown("the answer of SNS does not name it")) for number in range(many)]


def _taken(answer: Mapping[str, Any], many: int) -> list[Outcome]:
    """Return the outcome of each of the `many` entries of a request, in order, from EventBridge's answer."""
    entries: Sequence[Mapping[str, Any]] = answer.get("Entries", [])
    if len(entries) != many:
        return [Unknown("the answer of EventBridge does not name it")] * many
    return [
        Taken(entry["EventId"])
        if entry.get("EventId")
        else outcome_of_entry(entry.get("ErrorCode", ""), entry.get("ErrorMessage", ""), "EventBridge")
        for entry in entries
    ]
