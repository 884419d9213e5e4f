"""The words of a judgement."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Fate(StrEnum):
    """What became of a letter."""

    DELIVERED = "delivered"  #: the consumer processed it; without a consumer's log: its queue took it, and kept it
    PARKED = "parked"  #: the service says so
    DISCARDED = "discarded"  #: the service says so
    DUPLICATE = "closed_as_duplicate"  #: the service says so, and an equal letter was delivered
    WAITING = "waiting"  #: in a queue, or in the service's database
    LOST = "lost"  #: nowhere


class Offence(StrEnum):
    """A promise that was broken."""

    LOST = "lost"  #: a letter is nowhere
    DUPLICATE = "duplicates"  #: one delivery too many
    REORDERED = "order_violations"  #: a letter passed an earlier one of its lane
    OVERLAP = "overlaps"  #: two letters of one lane at the same time
    OVER_RATE = "over_rate"  #: more in one second than rate and burst allow
    OVER_ATTEMPTS = "over_attempts"  #: a letter was sent more often than allowed
    ALTERED = "altered"  #: body or attributes are not what they were
    OVER_BREAKER = "over_breaker"  #: sent while a breaker was open, beyond its canaries
    OVER_WAVE = "over_wave"  #: sent beside a first wave whose outcome was open
    ASTRAY = "astray"  #: sent to another queue than the one it died in


@dataclass(frozen=True, slots=True)
class Finding:
    """One broken promise.

    Attributes:
        event: whose: an event, a lane or a queue, as the offence has it.
        call: the number of the call in the log where it shows, if it shows in one.
        passed: the event that was to go first, where one went out of order.
    """

    offence: Offence
    event: str
    sentence: str
    call: int | None = None
    passed: str | None = None
