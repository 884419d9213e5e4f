"""An experiment's description: its queues, a letter's identity and order, the promises, and the service's records."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

Advance = Literal["accepted", "settled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """What the judge must know of an experiment.

    Attributes:
        sources: names of the source queues: messages fail there and are redriven to there.
        dlqs: names of their dead-letter queues.
        identity: the attribute that names an event: of two messages with the same value one may be delivered. None:
            equal bodies are the same event.
        ordering: the attribute that names a lane. None, on FIFO queues only: the message group is the lane.
        sequence: the attribute with a letter's number in its lane; None: its SequenceNumber in the queue where it was
            first seen.
        mark: the attribute with redrive id and attempt number, `ID:NUMBER`, that marks redriven messages.
        advance: when the next letter of a lane may be sent: as soon as the target accepted this one, or once it
            succeeded or returned.
        max_attempts: sends allowed per letter, not counting failures in an outage or as the canary of a breaker.
        outages: when the consumer failed every message: from and until, seconds on its clock.
        rate: letters per second, and `burst` more; None: unlimited.
        fifo: the sources are FIFO queues.
        cooldown: seconds of a breaker's first cooldown; each cooldown allows one letter. None: not checked.
        first_wave: this many letters are sent first, and no other before their outcome. None: not checked.
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
    """When a breaker was not closed: from and until, seconds on the clock of the call log; None: to the end."""

    opened: float
    closed: float | None = None


@dataclass(frozen=True, kw_only=True)
class ServiceRecords:
    """The service's own records: letters by the message ids under which they died, and its breaker.

    Attributes:
        parked: letters that wait for a person.
        discarded: letters that a person or a rule discarded.
        duplicates: letters that were closed because an equal letter was delivered.
        open: letters that are captured and not finished: the service's database has them.
        released: letters that a person released, so they may be sent out of order.
        shut: when the breaker of the source queues was open.
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
