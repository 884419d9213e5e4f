"""The description of an experiment (a redrive that the judge checks): its queues, limits, and the service's records."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

Advance = Literal["accepted", "settled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """An experiment: the queues and message attributes of a redrive that the judge checks, and its limits.

    A letter is a dead message. A lane has the letters with one ordering key. Messages that ask for the same work are
    one event.

    Attributes:
        sources: names of the source queues, in which messages fail and to which they are redriven.
        dlqs: names of their dead-letter queues.
        identity: the attribute that names an event. Of messages with the same value, only one may be delivered. If it
            is None, messages with equal bodies are the same event.
        ordering: the attribute that names a lane. If it is None (FIFO queues only), the message group is the lane.
        sequence: the attribute with a letter's number in its lane. If it is None, SQS's SequenceNumber in the queue
            where the letter was first seen is the number.
        mark: the attribute of redriven messages that has redrive id and attempt number as `ID:NUMBER`.
        advance: when the next letter of a lane may be sent. "accepted": when the target has accepted the letter before.
            "settled": when the letter before has succeeded or returned.
        max_attempts: how often a letter may be sent. A send that fails in an outage, or as a canary, does not count.
        outages: periods in which the consumer failed every message: start and end, in seconds on the consumer's clock.
        rate, burst: a queue may get at most `rate + burst` letters in one second. If `rate` is None, without limit.
        fifo: whether the source queues are FIFO queues.
        cooldown: seconds of a breaker's first cooldown. Per cooldown, one letter may be sent. If None, not checked.
        first_wave: how many letters must have outcomes before another letter is sent. If None, not checked.
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
    """A period in which a breaker was not closed, in seconds on the call log's clock.

    If `closed` is None, the breaker was not closed before the end of the experiment.
    """

    opened: float
    closed: float | None = None


@dataclass(frozen=True, kw_only=True)
class ServiceRecords:
    """The service's own records of dead messages (letters), by message id in the DLQ, and of its circuit breaker.

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
