"""The effects of a call of the API, which the call log and the journal record."""

from dataclasses import dataclass, field
from typing import NamedTuple


class Sent(NamedTuple):
    """One message that a client sent, or tried to send.

    `md5` is the body's; `attributes` has the message's text and number attributes. A FIFO queue accepted and dropped a
    `duplicate`, which has id and sequence number of the first message. A message that was not `accepted` has no id;
    `code` is the error in its answer, None without an answer.
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


# The first six fields of a Sent, as a plain tuple. It stands for a message that was accepted and is no duplicate.
Accepted = tuple[str, str | None, str | None, str | None, str, dict[str, str]]


@dataclass(slots=True)
class Record:
    """What one call did.

    Attributes:
        sent: the fields of each Sent.
        received: message id, receive count, and whether only a fault made the message visible.
        deleted: message id in the receipt handle (None: the handle is invalid), and whether the message was deleted.
        dead_lettered: message id, source queue and dead-letter queue.
        changed: whether the state of the local SQS changed.
        wait: seconds for which a receive without messages may wait.
    """

    queue: str | None = None
    sent: list[Sent | Accepted] = field(default_factory=list)
    received: list[tuple[str, int, bool]] = field(default_factory=list)
    deleted: list[tuple[str | None, bool]] = field(default_factory=list)
    dead_lettered: list[tuple[str, str, str]] = field(default_factory=list)
    changed: bool = False
    wait: int = 0
