"""The types of a judgement: what became of a message (fate), a kind of error (offence), and one error (finding)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Fate(StrEnum):
    """What became of a dead message, according to the judge."""

    DELIVERED = "delivered"  #: the consumer processed it; without its log: the queue accepted it for good
    PARKED = "parked"  #: according to the service's records
    DISCARDED = "discarded"  #: according to the service's records
    DUPLICATE = "closed_as_duplicate"  #: according to the service's records, and an equal letter was delivered
    WAITING = "waiting"  #: in a queue, or in the service's database
    LOST = "lost"  #: in no queue and in no record


class Offence(StrEnum):
    """A kind of error of a redrive, such as a lost message."""

    LOST = "lost"  #: a letter is in no queue and in no record
    DUPLICATE = "duplicates"  #: an event was sent or processed again after a delivery
    REORDERED = "order_violations"  #: a letter was sent before an earlier letter of its lane
    OVERLAP = "overlaps"  #: two letters of one lane were on their way at the same time
    OVER_RATE = "over_rate"  #: more sends in one second than rate and burst allow
    OVER_ATTEMPTS = "over_attempts"  #: a letter was sent more often than allowed
    ALTERED = "altered"  #: body or attributes were changed
    OVER_BREAKER = "over_breaker"  #: sent while a breaker was open, beyond its canaries
    OVER_WAVE = "over_wave"  #: sent before the first wave had an outcome
    ASTRAY = "astray"  #: sent to a queue in which no letter of the event failed


@dataclass(frozen=True, slots=True)
class Finding:
    """One error of a redrive, such as one lost message.

    Attributes:
        event: name of the event (all messages that ask for the same work). For OVER_RATE and OVER_BREAKER, name of the
            queue.
        call: number of the logged call that shows the error, or None if no single call shows it.
        passed: if the order was wrong, the event that should have been sent first.
    """

    offence: Offence
    event: str
    sentence: str
    call: int | None = None
    passed: str | None = None
