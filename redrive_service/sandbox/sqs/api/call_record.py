"""The effects of a call of the API. The call log records them."""

from dataclasses import dataclass, field
from typing import NamedTuple


class Sent(NamedTuple):
    """One message that a client sent, or tried to send.

    `md5`: digest of the body. `attributes`: the text and number attributes. `duplicate`: whether a FIFO queue dropped
    the message as a duplicate; its id and sequence number are then those of the first message. `accepted`: if False,
    the message has no id, and `code` is the error in the answer (None: the call got no answer).
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
    """The effects of one call.

    Attributes:
        sent: the sent messages, each as the fields of `Sent`.
        received: of each message: its id, its receive count, and whether only a fault made it visible.
        deleted: of each delete: the message id in the receipt handle (None: the handle is invalid), and whether the
            message was deleted.
        dead_lettered: of each message: its id, its source queue and its dead-letter queue.
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
