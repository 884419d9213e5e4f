"""What is tried: which queues, what identifies and orders a letter, what was promised, and what the service admits."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

Advance = Literal["accepted", "settled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """What the judge must know of an experiment.

    Attributes:
        sources: names of the queues in which messages die and to which they go back.
        dlqs: names of their dead-letter queues.
        identity: the attribute that names an event: two messages with the same one must not both be delivered. None:
            equal bodies are the same event.
        ordering: the attribute that names a lane; on FIFO queues it may be None: the message group is the lane.
        sequence: the attribute with a letter's number in its lane; None: its SequenceNumber in the queue where it was
            first seen.
        mark: the attribute with redrive id and attempt number, `ID:NUMBER`, that tells a redrive from a publication.
        advance: when the next letter of a lane may go: as soon as the target took this one, or once it worked or came
            back.
        max_attempts: sends of one letter, but for those that failed in an outage or as the canary of a breaker.
        outages: when the consumer failed everything: from and until, seconds on its clock.
        rate: letters a second, and `burst` more; None: unlimited.
        fifo: the sources are FIFO queues.
        cooldown: seconds of a breaker's first rest; while it is open one letter may go for each. None: not looked at.
        first_wave: so many letters go first, and no other before their outcome. None: not looked at.
    """

    sources: frozenset[str]
    dlqs: frozenset[str]
    identity: str | None = None
    ordering: str | None = None
    sequence: str | None = None
    mark: str = "RedriveId"
    advance: Advance = "settled"
    max_attempts: int | None = None
    outages: tuple[tuple[float, float], ...] = ()
    rate: float | None = None
    burst: float = 0
    fifo: bool = False
    cooldown: float | None = None
    first_wave: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerOpening:
    """From when to when a breaker was not closed: seconds, on the clock of the call log; None: to the end."""

    opened: float
    closed: float | None = None


@dataclass(frozen=True, kw_only=True)
class ServiceRecords:
    """What the service's own books say of letters, by the message ids under which they died, and of its breaker.

    Attributes:
        parked: they wait for a person.
        discarded: a person or a rule gave them up.
        duplicates: closed because an equal letter was delivered.
        open: captured and not finished: they are in the service's database.
        released: a person sent them on their way again, so they may go out of order.
        shut: when the breaker of the sources was open.
    """

    parked: frozenset[str] = frozenset()
    discarded: frozenset[str] = frozenset()
    duplicates: frozenset[str] = frozenset()
    open: frozenset[str] = frozenset()
    released: frozenset[str] = frozenset()
    shut: tuple[BreakerOpening, ...] = ()

    @cached_property
    def put_aside(self) -> frozenset[str]:
        """The letters that the service sends no more."""
        return self.parked | self.discarded | self.duplicates
