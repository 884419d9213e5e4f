"""The base class of standard and FIFO queues: messages, states and counts, receipt handles, visibility."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Final

from redrive_service.sandbox.sqs.api.errors import handle_is_malformed, invalid_value
from redrive_service.sandbox.sqs.api.receipt_handles import KEY_FORM, KEY_PLACE, handle_for, is_of
from redrive_service.sandbox.sqs.queues.attributes import Settings
from redrive_service.sandbox.sqs.queues.message import DELAYED, GONE, IN_FLIGHT, READY, Message
from redrive_service.sandbox.sqs.queues.retention import Retention
from redrive_service.sandbox.sqs.queues.timers import Timers

# Max seconds from a receive to the end of the visibility timeout: 12 hours (AWS, ChangeMessageVisibility).
LONGEST_VISIBILITY: Final = 43_200


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A queue's name, ARN and tag. The random tag distinguishes the queue from a deleted queue of the same name."""

    name: str
    arn: str
    tag: str


class Queue(ABC):
    """A queue: the parts that standard and FIFO queues share. Every call takes at most O(log n) time for n messages.

    `woken` is a set that all queues share. Each queue that gets a visible message adds its name, so that the server
    answers receives that wait for messages.
    """

    fifo: bool

    def __init__(self, identity: Identity, settings: Settings, timers: Timers, woken: set[str]) -> None:
        self.name, self.arn, self.tag = identity.name, identity.arn, identity.tag
        self.settings = settings
        self.timers = timers
        self.woken = woken
        self.tags: dict[str, str] = {}
        self.created_at = self.modified_at = 0.0
        self.purged_at: float | None = None
        self.in_flight_limit = 120_000
        self.messages: dict[str, Message] = {}
        self.counts = [0, 0, 0, 0]  # by state; GONE is not counted
        self.retention = Retention(self)
        self._keys = 0
        self._receives = 0

    # -- defined by the type of queue

    @abstractmethod
    def take(self, most: int, receives: float) -> tuple[list[Message], list[Message]]:
        """Return up to `most` messages to receive, and the messages that were already received `receives` times.

        The caller hides the messages of the first list, and moves the messages of the second list to the dead-letter
        queue.
        """

    @abstractmethod
    def movable(self) -> Message | None:
        """Return the next message that AWS's own redrive may move, or None if no message is visible."""

    @abstractmethod
    def has_something(self) -> bool:
        """Return whether a receive would return a message now."""

    @abstractmethod
    def _line_up(self, message: Message) -> None:
        """Add a message that has become visible (READY) to the list from which receives take messages."""

    @abstractmethod
    def _forget(self) -> None:
        """Empty the lists of messages, after a purge."""

    # -- adding and removing messages

    def next_key(self) -> str:
        """Return the key of the next message: a number as text, larger than all keys of earlier messages."""
        self._keys = key = self._keys + 1
        return KEY_FORM % key

    def put(self, message: Message, visible_at: float, now: float) -> None:
        """Add a message. If `visible_at` is after `now`, the message is delayed until then."""
        self.messages[message.key] = message
        self.retention.watch(message)
        if visible_at > now:
            message.state = DELAYED
            self.counts[DELAYED] += 1
            self.timers.set(message, visible_at)
        else:
            self.counts[READY] += 1
            self._line_up(message)

    def remove(self, message: Message) -> None:
        """Remove a message that is deleted, moved or too old."""
        self.counts[message.state] -= 1
        message.state = GONE
        self.timers.cancel(message)
        del self.messages[message.key]

    def purge(self) -> None:
        """Remove all messages, in flight or not."""
        for message in self.messages.values():
            message.state = GONE
            self.timers.cancel(message)
        self.messages = {}
        self.counts = [0, 0, 0, 0]
        self.timers.cancel(self.retention)
        self.retention = Retention(self)
        self._forget()

    # -- visibility

    def hand_out(self, messages: list[Message], visibility: int, now: float) -> None:
        """Hide visible messages for `visibility` seconds, because they are received. Each gets a new receipt handle."""
        until = now + visibility
        receive = self._receives
        for message in messages:
            receive += 1
            message.handle = handle_for(self.tag, message.key, receive, message.message_id)
            message.receive_count += 1
            message.received_at = now
            if message.first_received_at is None:
                message.first_received_at = now
            message.state = IN_FLIGHT
            self.timers.set(message, until)
        self._receives = receive
        self.counts[READY] -= len(messages)
        self.counts[IN_FLIGHT] += len(messages)

    def hide_again(self, message: Message, visibility: int, now: float) -> None:
        """Restart the visibility timeout of a message in flight. With 0 seconds, the message is visible at once."""
        message.promised_until = 0.0
        if visibility:
            self._hide(message, now + visibility)
        else:
            self.timers.cancel(message)
            self.wake(message)

    def _hide(self, message: Message, until: float) -> None:
        if message.state != IN_FLIGHT:
            self.counts[message.state] -= 1
            self.counts[IN_FLIGHT] += 1
            message.state = IN_FLIGHT
        self.timers.set(message, until)

    def wake(self, message: Message) -> None:
        """Make a message READY, because its delay or visibility timeout has ended."""
        self.counts[message.state] -= 1
        self.counts[READY] += 1
        message.state = READY
        self._line_up(message)

    def check_time_left(self, message: Message, visibility: int, now: float) -> None:
        """Raise SqsError if the visibility timeout would end more than twelve hours after the receive."""
        if int(now - message.received_at) + visibility > LONGEST_VISIBILITY:
            reason = f"Total VisibilityTimeout for the message is beyond the limit [{LONGEST_VISIBILITY} seconds]."
            raise invalid_value(visibility, "VisibilityTimeout", reason)

    # -- receipt handles

    def find(self, handle: str) -> Message | None:
        """Return the message of a receipt handle, even if the message has a newer handle.

        If the message is no longer in the queue, return None.

        Raises:
            SqsError: the text is not a receipt handle of this queue.
        """
        message = self.messages.get(handle[KEY_PLACE])
        if message is not None and message.handle == handle:
            return message
        if not is_of(self.tag, handle):
            raise handle_is_malformed(handle)
        return message
