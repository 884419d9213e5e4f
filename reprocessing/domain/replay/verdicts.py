"""Decisions of the gate about a lane's head, and results of sending an attempt."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from reprocessing.domain.lifecycle import ParkedReason


@dataclass(frozen=True, slots=True)
class Go:
    """It may be sent as soon as the rate limit allows."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Not now: check its lane again `after` this time."""

    after: timedelta
    why: str


@dataclass(frozen=True, slots=True)
class Skip:
    """Do not send it: an equal letter was delivered. Close it as that letter's duplicate."""

    duplicate_of: int


@dataclass(frozen=True, slots=True)
class Park:
    """Do not send it: a person has to decide."""

    reason: ParkedReason
    detail: str = ""


@dataclass(frozen=True, slots=True)
class OpenBreaker:
    """Open the circuit breaker: the message has no attempts left, and nothing else succeeds at its target."""

    why: str


Verdict = Go | Wait | Skip | Park | OpenBreaker


@dataclass(frozen=True, slots=True)
class Taken:
    """The target accepted it. `message_id`: the queue's id of the message; None if the target gives none."""

    message_id: str | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """The target refused it.

    Attributes:
        code: the target's code of the refusal.
        poison: another attempt would fail the same way.
        reason: what a poison letter is parked for; None: REFUSED.
        after: do not try again before this time, by request of the target.
    """

    code: str
    message: str
    poison: bool = False
    reason: ParkedReason | None = None
    after: timedelta | None = None


@dataclass(frozen=True, slots=True)
class NotSent:
    """Nothing was sent; the attempt does not count.

    Attributes:
        unreachable: the target could not be reached.
        after: do not try again before this time, by request of the target.
    """

    why: str
    unreachable: bool = False
    after: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Unknown:
    """It may have been sent: there was no reply, or the reply does not name it."""

    why: str


Outcome = Taken | Refused | NotSent | Unknown
