"""Define decisions about sending the first letter of a lane (an ordering key's letters), and results of attempts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from reprocessing.domain.lifecycle import ParkedReason


@dataclass(frozen=True, slots=True)
class Go:
    """The letter may be sent as soon as the rate limit allows."""


@dataclass(frozen=True, slots=True)
class Wait:
    """The letter cannot be sent now. Check its lane again when `after` has passed."""

    after: timedelta
    why: str


@dataclass(frozen=True, slots=True)
class Skip:
    """Do not send the letter, but close it as a duplicate: an equal letter (`duplicate_of`) was delivered."""

    duplicate_of: int


@dataclass(frozen=True, slots=True)
class Park:
    """Park the letter instead of sending it: a person has to decide."""

    reason: ParkedReason
    detail: str = ""


@dataclass(frozen=True, slots=True)
class OpenBreaker:
    """Open the target's circuit breaker: the message has used up its attempts, and no other message succeeds."""

    why: str


Verdict = Go | Wait | Skip | Park | OpenBreaker


@dataclass(frozen=True, slots=True)
class Taken:
    """The target accepted the message. `message_id`: the message's new id at the target; None: it has none."""

    message_id: str | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """The target refused the message.

    Attributes:
        code: the error code that the target returned, such as an HTTP status.
        poison: whether another attempt would fail the same way.
        reason: why a poison letter is parked; None: the parking reason REFUSED.
        after: the target asked to wait this long before another attempt.
        quotes: `message` is the target's own text, which may quote the payload. It is stored like a payload.
    """

    code: str
    message: str
    poison: bool = False
    reason: ParkedReason | None = None
    after: timedelta | None = None
    quotes: bool = False


@dataclass(frozen=True, slots=True)
class NotSent:
    """Nothing was sent; the attempt does not count.

    Attributes:
        unreachable: whether the target could not be reached.
        after: the target asked to wait this long before another attempt.
    """

    why: str
    unreachable: bool = False
    after: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Unknown:
    """The message may have been sent: no reply came, or the reply does not name the message."""

    why: str


Outcome = Taken | Refused | NotSent | Unknown
