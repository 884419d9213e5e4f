"""A message in one queue, and its state there: READY, DELAYED, IN_FLIGHT or GONE."""

from dataclasses import dataclass
from typing import Final, Protocol

from redrive_service.sandbox.sqs.api.message_content import Content

# Plain numbers, not an Enum: each call compares them several times for every message, and an Enum is slower.
READY: Final = 0
DELAYED: Final = 1
IN_FLIGHT: Final = 2
GONE: Final = 3


class MessageHolder(Protocol):
    """The methods of a queue that a message calls."""

    def wake(self, message: "Message") -> None:
        """Make the message READY. The message calls this when its delay or visibility timeout ends."""


@dataclass(slots=True, eq=False)
class Message:
    """A message in a queue. If it moves to another queue, it becomes GONE, and a new message has the same content.

    Attributes:
        key: number of the message in its queue, as text.
        sent_at: time from which the retention counts. When a message moves to a dead-letter queue, a standard queue
            keeps this time, and a FIFO queue sets it anew. All times are in seconds since 1970.
        source_arn: ARN of the queue from which the message moved to this dead-letter queue, or None.
        handle: the latest receipt handle.
        promised_until: the regular end of the visibility timeout, if a fault makes the message visible too early;
            else 0.
        timer: number of the timer that ends the delay or the visibility timeout; 0 if there is none.
    """

    queue: MessageHolder
    key: str
    message_id: str
    content: Content
    sent_at: float
    group: str | None = None
    deduplication_id: str | None = None
    sequence_number: str | None = None
    receive_count: int = 0
    first_received_at: float | None = None
    source_arn: str | None = None
    state: int = READY
    handle: str = ""
    received_at: float = 0.0
    promised_until: float = 0.0
    timer: int = 0

    def fire(self, due: float) -> None:  # noqa: ARG002 - part of the protocol Timed
        """Handle the end of the delay or of the visibility timeout."""
        self.queue.wake(self)
