"""What happened to each event, and to each message of an event."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

Lane = tuple[str, str]


@dataclass(slots=True, eq=False, kw_only=True)
class Message:
    """One message in a queue. Moments are positions in the log: a batch's entries have successive positions.

    Attributes:
        buried: when it went to a dlq, and from which queue (None: it was sent directly to the dlq).
        seen_dead: when receives from a dlq returned it.
        deleted: when it was deleted.
    """

    message_id: str
    queue: str
    md5: str | None
    attributes: Mapping[str, str]
    group: str | None = None
    sequence_number: str | None = None
    buried: int | None = None
    died_in: str | None = None
    seen_dead: list[int] = field(default_factory=list)
    deleted: int | None = None

    def seen_dead_by(self, moment: int) -> bool:
        """Return whether it had been received from the dlq by then."""
        return bool(self.seen_dead) and self.seen_dead[0] < moment

    def on_its_way_at(self, moment: int) -> bool:
        """Return whether it was neither consumed nor back in the dlq."""
        return not self.seen_dead_by(moment) and (self.deleted is None or self.deleted > moment)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Send:
    """One entry of a redrive's send; `message` is the message that it created, None if refused or not executed.

    Attributes:
        swallowed: a FIFO queue dropped the entry as a duplicate; it created no message.
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
        """Whether the send put a message into the queue."""
        return self.message is not None and not self.swallowed


@dataclass(slots=True, eq=False, kw_only=True)
class Event:
    """All messages that are the same event for the consumer: the letters that died, and the messages sent for them.

    Attributes:
        arrivals: the sends that created a message, in their order.
    """

    name: str
    letters: list[Message] = field(default_factory=list)
    sends: list[Send] = field(default_factory=list)
    arrivals: list[Send] = field(default_factory=list)
    lane: Lane | None = None
    sequence: Decimal = Decimal(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Processing:
    """One line of the consumer's log; times in seconds on the consumer's clock."""

    message_id: str
    started: float
    ended: float
    ok: bool


@dataclass(slots=True, kw_only=True)
class Evidence:
    """The content of the logs.

    Attributes:
        events: events by name, of which a letter died or a redrive was sent.
        processings: by message id; None if there is no consumer's log.
    """

    events: dict[str, Event]
    processings: dict[str, list[Processing]] | None

    def lanes(self) -> dict[Lane, list[Event]]:
        """Return the events of each lane, in the lane's order."""
        lanes: dict[Lane, list[Event]] = defaultdict(list)
        for event in self.events.values():
            if event.lane is not None:
                lanes[event.lane].append(event)
        return {lane: sorted(events, key=lambda event: event.sequence) for lane, events in lanes.items()}

    def processed(self, message: Message | None) -> bool:
        """Return whether the consumer says that it processed a message."""
        if message is None or self.processings is None:
            return False
        return any(line.ok for line in self.processings.get(message.message_id, ()))
