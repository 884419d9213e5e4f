"""What a call did, for the call log and the journal."""

from dataclasses import dataclass, field
from typing import NamedTuple


class Sent(NamedTuple):
    """One message that somebody sent, or tried to.

    `md5` is that of the body, `attributes` are the texts and numbers among its attributes. A `duplicate` was accepted
    and swallowed by a FIFO queue: id and sequence number are the first one's. What was not `accepted` has no id, and
    the `code` it was refused with, if it was answered at all.
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


# Of what was accepted and is no duplicate, as nearly everything, the fields of its Sent as far as they have no default.
Accepted = tuple[str, str | None, str | None, str | None, str, dict[str, str]]


@dataclass(slots=True)
class Record:
    """What one call did.

    `sent` holds what a Sent is made of, `received` message id, receive count and whether a fault alone made it visible;
    `deleted` the message id that a receipt handle names (None: it is no handle) and whether it was deleted;
    `dead_lettered` message id, source and dead-letter queue. `changed` says whether the state changed, `wait` how many
    seconds a receive that found nothing may wait.
    """

    queue: str | None = None
    sent: list[Sent | Accepted] = field(default_factory=list)
    received: list[tuple[str, int, bool]] = field(default_factory=list)
    deleted: list[tuple[str | None, bool]] = field(default_factory=list)
    dead_lettered: list[tuple[str, str, str]] = field(default_factory=list)
    changed: bool = False
    wait: int = 0
