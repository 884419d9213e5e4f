"""What the logs say about each event (all messages that ask for the same work), and about each of its messages."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

Lane = tuple[str, str]


@dataclass(slots=True, eq=False, kw_only=True)
class Message:
    """A message in a queue, as the call log shows it.

    A moment is a position in the call log (a number, not a time). Each entry of a batch call has a moment of its own.

    Attributes:
        md5: digest of the body, or None if it is not known, because the message was sent before the log began.
        dead_lettered: the moment at which the message went to a dlq, or None.
        failed_in: the queue from which the message went to the dlq, or None if it was sent directly to the dlq.
        dlq_receives: the moments at which receives from a dlq returned the message.
        deleted: the moment at which the message was deleted.
    """

    message_id: str
    queue: str
    md5: str | None
    attributes: Mapping[str, str]
    group: str | None = None
    sequence_number: str | None = None
    dead_lettered: int | None = None
    failed_in: str | None = None
    dlq_receives: list[int] = field(default_factory=list)
    deleted: int | None = None

    def was_received_by(self, moment: int) -> bool:
        """Return whether the message had been received from a dlq before this moment."""
        return bool(self.dlq_receives) and self.dlq_receives[0] < moment

    def on_its_way_at(self, moment: int) -> bool:
        """Return whether the message was neither deleted nor received from a dlq before this moment."""
        return not self.was_received_by(moment) and (self.deleted is None or self.deleted > moment)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Send:
    """One message that the service tried to send.

    Attributes:
        call: number of the call in the call log.
        at: time of the call, in seconds since 1970.
        letter: the redrive id.
        attempt: number of the attempt.
        message: the message that SQS created, or None if SQS refused the send.
        swallowed: whether a FIFO queue dropped the message as a duplicate of an earlier message.
    """

    moment: int
    call: int
    at: float
    queue: str
    letter: str
    attempt: int
    message: Message | None
    md5: str | None
    attributes: Mapping[str, str]
    swallowed: bool = False

    @property
    def arrived(self) -> bool:
        """Return whether the send put a new message into the queue."""
        return self.message is not None and not self.swallowed


@dataclass(slots=True, eq=False, kw_only=True)
class Event:
    """An event: all messages that ask the consumer for the same work.

    Attributes:
        letters: the dead messages of the event, in a DLQ.
        sends: all redrive sends of the event, in their order.
        arrivals: those of `sends` that put a new message into a queue, in their order.
    """

    name: str
    letters: list[Message] = field(default_factory=list)
    sends: list[Send] = field(default_factory=list)
    arrivals: list[Send] = field(default_factory=list)
    lane: Lane | None = None
    sequence: Decimal = Decimal(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Processing:
    """One processing of a message, from the consumer's log. Times are in seconds on the consumer's clock."""

    message_id: str
    started: float
    ended: float
    ok: bool


@dataclass(slots=True, kw_only=True)
class Evidence:
    """What both logs say about events, messages and their processing.

    Attributes:
        events: all events by name that have at least one dead message or one redrive send.
        processings: the processings of each message, by message id. None if there is no log of a consumer.
    """

    events: dict[str, Event]
    processings: dict[str, list[Processing]] | None

    def lanes(self) -> dict[Lane, list[Event]]:
        """Return, for each lane (source queue and ordering key), its events in the order of their sequence."""
        lanes: dict[Lane, list[Event]] = defaultdict(list)
        for event in self.events.values():
            if event.lane is not None:
                lanes[event.lane].append(event)
        return {lane: sorted(events, key=lambda event: event.sequence) for lane, events in lanes.items()}

    def processed(self, message: Message | None) -> bool:
        """Return whether the consumer's log has a successful processing of the message. Without a log, return False."""
        if message is None or self.processings is None:
            return False
        return any(line.ok for line in self.processings.get(message.message_id, ()))
