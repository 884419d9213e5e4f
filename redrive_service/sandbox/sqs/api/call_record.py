"""What a call of the API did with messages. The call log stores it."""

from dataclasses import dataclass, field
from typing import NamedTuple


class Sent(NamedTuple):
    """One message that a client sent, or tried to send.

    `md5` is the digest of the body, and `attributes` has the text and number attributes. If `duplicate` is true, a FIFO
    queue dropped the message as a duplicate, and its id and sequence number are those of the first message. If
    `accepted` is false, the message has no id, and `code` is the error in the answer, or None if there was no answer.
    """

    message_id: str | None
    group: str | None
    deduplication_id: str | None
    sequence_number: str | None
    md5: str | None
    attributes: dict[str, str]
    duplicate: bool = False
    accepted: bool = True
    code: str | None = None


# The first six fields of `Sent` as a plain tuple, which is faster: for an accepted message that is no duplicate.
Accepted = tuple[str, str | None, str | None, str | None, str, dict[str, str]]


@dataclass(slots=True)
class Record:
    """What one call did with messages.

    Attributes:
        queue: name of the queue.
        sent: the messages that were sent, each with the fields of `Sent`.
        received: for each received message, its id, its receive count, and whether only a fault made it visible.
        deleted: for each delete, the message id in the receipt handle (None if the handle is invalid), and whether the
            message was deleted.
        dead_lettered: for each message that moved to a dead-letter queue, its id, its source queue and that queue.
        changed: whether the state of the local SQS changed.
        wait: for how many seconds a receive may wait, because it found no messages.
    """

    queue: str | None = None
    sent: list[Sent | Accepted] = field(default_factory=list)
    received: list[tuple[str, int, bool]] = field(default_factory=list)
    deleted: list[tuple[str | None, bool]] = field(default_factory=list)
    dead_lettered: list[tuple[str, str, str]] = field(default_factory=list)
    changed: bool = False
    wait: int = 0
