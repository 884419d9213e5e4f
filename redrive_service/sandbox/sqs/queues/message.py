"""A message in one queue, and where it stands there."""

from dataclasses import dataclass
from typing import Final, Protocol

from redrive_service.sandbox.sqs.api.message_content import Content

# Plain numbers, not an Enum: they are compared several times for every message of every call.
READY: Final = 0
DELAYED: Final = 1
IN_FLIGHT: Final = 2
GONE: Final = 3


class MessageHolder(Protocol):
    """What a message needs of its queue."""

    def wake(self, message: "Message") -> None:
        """Make the message READY: its delay or visibility timeout is over."""


@dataclass(slots=True, eq=False)
class Message:
    """One message. A move to another queue makes a new one of the same content; the old one is GONE.

    Times are seconds of the injected clock. `sent_at` is also what retention counts from: a standard dead-letter queue
    keeps the original send, a FIFO one starts anew. `promised_until` is when it should have become visible, where a
    fault makes it visible earlier, else 0.
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

    def fire(self, due: float) -> None:  # noqa: ARG002 - other timers need it
        """The delay or the visibility timeout is over."""
        self.queue.wake(self)
