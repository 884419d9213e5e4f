"""Define the results of checking a condition that people are notified of: it holds, does not hold, or is not known."""

from __future__ import annotations

from dataclasses import dataclass

from reprocessing.domain.notifications.event import Event, EventKind


@dataclass(frozen=True, slots=True)
class Holds:
    """The condition holds. `event` is the event that people are notified of."""

    event: Event


@dataclass(frozen=True, slots=True)
class HoldsNot:
    """The condition was checked and does not hold. Only this result ends an incident (a reported condition).

    `kind` and `subject`, such as "dlq:3", identify the incident.
    """

    kind: EventKind
    subject: str


@dataclass(frozen=True, slots=True)
class NotKnown:
    """It is not known whether the condition holds, for example after the workers were down.

    A condition that people were notified of still counts as holding.
    """

    kind: EventKind
    subject: str


Observation = Holds | HoldsNot | NotKnown
