"""Define decisions about sending a lane's first letter, and results of sending an attempt."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from reprocessing.domain.lifecycle import ParkedReason


@dataclass(frozen=True, slots=True)
class Go:
    """The letter may be sent as soon as the rate limit allows."""


@dataclass(frozen=True, slots=True)
class Wait:
    """The letter cannot be sent now: check the letter's lane again `after` this time."""

    after: timedelta
    why: str


@dataclass(frozen=True, slots=True)
class Skip:
    """Do not send the letter: an equal letter was delivered. Close the letter as a duplicate of the equal letter."""

    duplicate_of: int


@dataclass(frozen=True, slots=True)
class Park:
    """Park the letter instead of sending it: a person has to decide."""

    reason: ParkedReason
    detail: str = ""


@dataclass(frozen=True, slots=True)
class OpenBreaker:
    """Open the circuit breaker: the message has no attempts left, and no other message to the target succeeds."""

    why: str


Verdict = Go | Wait | Skip | Park | OpenBreaker


@dataclass(frozen=True, slots=True)
class Taken:
    """The target accepted the message. `message_id`: the queue's id of the message; None: the target returns no id."""

    message_id: str | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """The target refused the message.

    Attributes:
        code: the target's code of the refusal.
        poison: another attempt would fail the same way.
        reason: the reason for which a poison letter is parked; None: REFUSED.
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
    """The message may have been sent: no reply came, or the reply does not name the message."""

    why: str


Outcome = Taken | Refused | NotSent | Unknown
