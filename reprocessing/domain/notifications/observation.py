"""The answers of a look at a condition: it holds, it does not hold, or that is not known."""

from __future__ import annotations

from dataclasses import dataclass

from reprocessing.domain.notifications.event import Event, EventKind


@dataclass(frozen=True, slots=True)
class Holds:
    """The condition holds. `event`: what is announced."""

    event: Event


@dataclass(frozen=True, slots=True)
class HoldsNot:
    """The condition was looked at, and does not hold. This alone ends an incident."""

    kind: EventKind
    subject: str


@dataclass(frozen=True, slots=True)
class NotKnown:
    """It is not known whether the condition holds, such as after workers were away. An open incident stays open."""

    kind: EventKind
    subject: str


Observation = Holds | HoldsNot | NotKnown
