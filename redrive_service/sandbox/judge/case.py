"""The description of an experiment (a judged redrive): its queues and promises, and the service's records."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

Advance = Literal["accepted", "settled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """An experiment: its queues, the attributes that name events and lanes, and the limits that the service promised.

    Attributes:
        sources: names of the source queues, in which messages fail and to which they are redriven.
        dlqs: names of their dead-letter queues.
        identity: the attribute that names an event. Only one of two messages with the same value may be delivered.
            None: messages with equal bodies are the same event.
        ordering: the attribute that names a lane. None, on FIFO queues only: the message group is the lane.
        sequence: the attribute with a letter's number in its lane; None: its SequenceNumber in the queue where it was
            first seen.
        mark: the attribute with redrive id and attempt number, `ID:NUMBER`, that marks redriven messages.
        advance: when the next letter of a lane may be sent. accepted: once the target accepted the letter before.
            settled: once the letter before succeeded or returned.
        max_attempts: sends allowed per letter, not counting failures in an outage or as the canary of a breaker.
        outages: periods in which the consumer failed every message: start and end, in seconds on the consumer's clock.
        rate: max letters per second to a queue, plus `burst`; None: no limit.
        fifo: whether the source queues are FIFO queues.
        cooldown: seconds of a breaker's first cooldown; each cooldown allows one letter. None: not checked.
        first_wave: how many letters must have outcomes before any other letter is sent. None: not checked.
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
    """A period in which a breaker was not closed, in seconds on the call log's clock. `closed` None: until the end."""

    opened: float
    closed: float | None = None


@dataclass(frozen=True, kw_only=True)
class ServiceRecords:
    """The service's own records of letters and of its breaker. A letter is named by its message id in the dlq.

    Attributes:
        parked: letters that wait for a person.
        discarded: letters that a person or a rule discarded.
        duplicates: letters that were closed because an equal letter was delivered.
        open: letters that are captured and not finished: the service's database has them.
        released: letters that a person released, so they may be sent out of order.
        openings: periods in which the breaker of the source queues was not closed.
    """

    parked: frozenset[str] = frozenset()
    discarded: frozenset[str] = frozenset()
    duplicates: frozenset[str] = frozenset()
    open: frozenset[str] = frozenset()
    released: frozenset[str] = frozenset()
    openings: tuple[BreakerOpening, ...] = ()

    @cached_property
    def put_aside(self) -> frozenset[str]:
        """Return the letters that the service does not send any more: parked, discarded, and duplicates."""
        return self.parked | self.discarded | self.duplicates
