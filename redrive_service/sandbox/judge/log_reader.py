"""Read the call log of the local SQS and the consumer's log, and group what they say by message and event."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from decimal import Decimal, InvalidOperation
from itertools import count
from typing import Any

from redrive_service.sandbox.judge.case import Experiment
from redrive_service.sandbox.judge.evidence import Event, Evidence, Message, Processing, Send


class LogIsIncomplete(Exception):
    """Calls are missing from the call log, so the redrive cannot be judged."""


class MarkIsUnreadable(Exception):
    """The attribute of a redriven message with redrive id and attempt number is not `ID:NUMBER`, so cannot be read."""


class SequenceIsNoNumber(Exception):
    """The attribute that orders the messages of a lane is not a number."""


def read(
    experiment: Experiment, calls: Iterable[Mapping[str, Any]], consumed: Iterable[Mapping[str, Any]] | None
) -> Evidence:
    """Return what both logs say about events and messages.

    `calls` are the lines of the call log, and `consumed` the lines of the consumer's log, or None if there is no such
    log.

    Raises:
        LogIsIncomplete: the calls' numbers have gaps.
        MarkIsUnreadable: the attribute with redrive id and attempt number of a redriven message is not `ID:NUMBER`.
        SequenceIsNoNumber: the attribute that orders the messages of a lane is not a number.
    """
    reading = _Reading(experiment)
    expected: int | None = None
    for call in calls:
        if expected not in (None, call["n"]):
            raise LogIsIncomplete(f"Call {expected} is missing, {call['n']} follows. Read the log whole, unfiltered.")
        expected = call["n"] + 1
        reading.take(call)
    return Evidence(events=reading.events(), processings=None if consumed is None else _processings(consumed))


def _processings(consumed: Iterable[Mapping[str, Any]]) -> dict[str, list[Processing]]:
    lines: dict[str, list[Processing]] = defaultdict(list)
    for line in consumed:
        processing = Processing(
            message_id=line["message_id"], started=line["started"], ended=line["ended"], ok=line["outcome"] == "ok"
        )
        lines[processing.message_id].append(processing)
    return dict(lines)


class _Reading:
    """Reads the logged calls, finds all messages and all sends by the service, and groups them by event."""

    def __init__(self, experiment: Experiment) -> None:
        self._experiment = experiment
        self._moments = count()
        self._messages: dict[str, Message] = {}
        self._sends: list[Send] = []

    def take(self, call: Mapping[str, Any]) -> None:
        """Read the next call of the log: its sends, receives, deletes and moves to a dlq."""
        queue = call["queue"]
        if queue in self._experiment.sources | self._experiment.dlqs:
            for entry in call["sent"]:
                self._send(call, entry)
        if queue in self._experiment.dlqs and call["answered"]:
            for entry in call["received"]:
                self._message(entry["message_id"], queue).dlq_receives.append(next(self._moments))
        for entry in call["dead_lettered"]:
            self._bury(entry)
        for entry in call["deleted"]:
            message = self._messages.get(entry["message_id"])
            if entry["took_effect"] and message is not None:
                message.deleted = next(self._moments)
        if call["action"] in ("PurgeQueue", "DeleteQueue") and call["status"] == 200:  # noqa: PLR2004  # HTTP's OK
            self._empty(queue)

    def _send(self, call: Mapping[str, Any], entry: Mapping[str, Any]) -> None:
        moment, queue, message = next(self._moments), call["queue"], None
        if entry["accepted"]:
            message = self._message(entry["message_id"], queue, entry)
        attributes, mark = entry["attributes"], entry["attributes"].get(self._experiment.mark)
        if mark is None:
            return
        letter, separator, attempt = mark.rpartition(":")
        if not (letter and separator and attempt.isdecimal()):
            raise MarkIsUnreadable(f"{self._experiment.mark} is {mark!r} in call {call['n']}, not ID:NUMBER.")
        send = Send(
            moment=moment,
            call=call["n"],
            at=call["at"],
            queue=queue,
            letter=letter,
            attempt=int(attempt),
            message=message,
            md5=entry["md5"],
            attributes=attributes,
            swallowed=entry["duplicate"],
        )
        self._sends.append(send)

    def _message(self, message_id: str, queue: str, sent: Mapping[str, Any] | None = None) -> Message:
        """Return the message with this id. If it was sent before the log began, only its id is known."""
        if message_id not in self._messages:
            content = sent or {"md5": None, "attributes": {}, "group": None, "sequence_number": None}
            self._messages[message_id] = message = Message(
                message_id=message_id,
                queue=queue,
                md5=content["md5"],
                attributes=content["attributes"],
                group=content["group"],
                sequence_number=content["sequence_number"],
            )
            if queue in self._experiment.dlqs:
                message.dead_lettered = next(self._moments)
        return self._messages[message_id]

    def _bury(self, entry: Mapping[str, Any]) -> None:
        if entry["to"] in self._experiment.dlqs:
            message = self._message(entry["message_id"], entry["from"])
            message.dead_lettered, message.failed_in = next(self._moments), entry["from"]

    def _empty(self, queue: str) -> None:
        """Record that the messages of a queue were deleted, because the queue was purged or deleted."""
        for message in self._messages.values():
            in_dlq = message.dead_lettered is not None and queue in self._experiment.dlqs
            if message.deleted is None and (in_dlq or (message.dead_lettered is None and message.queue == queue)):
                message.deleted = next(self._moments)

    def events(self) -> dict[str, Event]:
        """Return the events by name. Call this after the whole log was read."""
        events: dict[str, Event] = {}
        ours = {send.message.message_id for send in self._sends if send.message is not None}
        for message in self._messages.values():
            if message.dead_lettered is not None and message.message_id not in ours:
                name = self._name(message.attributes, message.md5) or message.message_id
                event = events.setdefault(name, Event(name=name))
                event.letters.append(message)
                if event.lane is None:
                    self._place(event, message)
        for send in self._sends:
            name = self._name(send.attributes, send.md5) or send.letter
            event = events.setdefault(name, Event(name=name))
            event.sends.append(send)
            if send.arrived:
                event.arrivals.append(send)
        return events

    def _name(self, attributes: Mapping[str, str], md5: str | None) -> str | None:
        return md5 if self._experiment.identity is None else attributes.get(self._experiment.identity)

    def _place(self, event: Event, message: Message) -> None:
        """Set lane and sequence of the event, if it is in a lane. Raises SequenceIsNoNumber for an invalid sequence."""
        experiment = self._experiment
        key = message.attributes.get(experiment.ordering) if experiment.ordering else message.group
        if key is None:
            return
        number = message.attributes.get(experiment.sequence) if experiment.sequence else message.sequence_number
        try:
            event.sequence = Decimal(number or "none")
        except InvalidOperation:
            raise SequenceIsNoNumber(f"{event.name}, of lane {key}, has the sequence {number!r}.") from None
        event.lane = (message.failed_in or message.queue, key)
