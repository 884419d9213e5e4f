"""Check the consumer's log of redriven messages: order, overlap, and events that were processed twice."""

from __future__ import annotations

from collections.abc import Iterator

from redrive_service.sandbox.judge.case import Experiment, ServiceRecords
from redrive_service.sandbox.judge.evidence import Event, Evidence, Processing
from redrive_service.sandbox.judge.findings import Finding, Offence


def processed_twice(evidence: Evidence) -> Iterator[Finding]:
    """Find events for which the consumer processed two redriven messages successfully.

    It is not an error if SQS delivered the same message twice.
    """
    for event in evidence.events.values():
        done = {send.message.message_id for send in event.arrivals if send.message and evidence.processed(send.message)}
        if len(done) > 1:
            sentence = f"Event {event.name} was processed {len(done)} x, as messages {', '.join(done)}."
            yield Finding(Offence.DUPLICATE, event.name, sentence)


def redelivered(evidence: Evidence) -> int:
    """Return how many redriven messages the consumer processed more than once, because SQS delivered them again."""
    processings = evidence.processings or {}
    ours = {send.message.message_id for event in evidence.events.values() for send in event.sends if send.message}
    return sum(sum(line.ok for line in processings.get(message_id, ())) > 1 for message_id in ours)


def overlapping(evidence: Evidence, experiment: Experiment) -> Iterator[Finding]:
    """Find redriven messages of one lane (messages with one ordering key) that were processed at the same time."""
    if not _needs_order(experiment):
        return
    for lane, events in evidence.lanes().items():
        latest: tuple[Event, Processing] | None = None
        for event, line in _processings(events, evidence):
            if latest and line.started < latest[1].ended and event is not latest[0]:
                sentence = f"Lane {lane[1]}: event {event.name} began while event {latest[0].name} was processed."
                yield Finding(Offence.OVERLAP, event.name, sentence)
            if latest is None or line.ended > latest[1].ended:
                latest = event, line


def reordered(evidence: Evidence, experiment: Experiment, records: ServiceRecords) -> Iterator[Finding]:
    """Find events that were first processed successfully after a later event of their lane.

    A message that came back to the DLQ may be processed after later messages. `sends` checks whether such a message
    was sent in order.
    """
    if not _needs_order(experiment):
        return
    for lane, events in evidence.lanes().items():
        highest: Event | None = None
        done: set[str] = set()
        for event, line in _processings(events, evidence):
            if not line.ok or event.name in done:
                continue
            done.add(event.name)
            if highest and event.sequence < highest.sequence and not _may_be_late(event, records):
                sentence = f"Lane {lane[1]}: event {event.name} was processed after event {highest.name}."
                yield Finding(Offence.REORDERED, event.name, sentence)
            if highest is None or event.sequence > highest.sequence:
                highest = event


def _needs_order(experiment: Experiment) -> bool:
    """Return whether the consumer must get the messages of a lane in order.

    A standard queue does not keep the order, if the next message is sent before the outcome of the message before.
    """
    return experiment.fifo or experiment.advance == "settled"


def _may_be_late(event: Event, records: ServiceRecords) -> bool:
    if any(letter.message_id in records.released for letter in event.letters):
        return True
    return any(send.message and send.message.dead_lettered is not None for send in event.arrivals)


def _processings(events: list[Event], evidence: Evidence) -> list[tuple[Event, Processing]]:
    """Return the processings of redriven messages of a lane, sorted by the time at which they began."""
    found = [
        (event, line)
        for event in events
        for message_id in {send.message.message_id for send in event.arrivals if send.message}
        for line in (evidence.processings or {}).get(message_id, ())
    ]
    return sorted(found, key=lambda pair: pair[1].started)
