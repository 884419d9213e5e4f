"""What the gate says of a head, and what the wire says of an attempt."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from reprocessing.domain.lifecycle import ParkedReason


@dataclass(frozen=True, slots=True)
class Go:
    """It may be sent, as soon as a token of its target's rate is there."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Not now; its lane is looked at again `after`."""

    after: timedelta
    why: str


@dataclass(frozen=True, slots=True)
class Skip:
    """Never: an equal letter was delivered under its key. It is closed as that letter's duplicate."""

    duplicate_of: int


@dataclass(frozen=True, slots=True)
class Park:
    """Never by itself: a person decides."""

    reason: ParkedReason
    detail: str = ""


@dataclass(frozen=True, slots=True)
class OpenBreaker:
    """Open the breaker: the message has no attempts left, and nothing else succeeds at its target. It waits."""

    why: str


Verdict = Go | Wait | Skip | Park | OpenBreaker


@dataclass(frozen=True, slots=True)
class Taken:
    """The target has it.

    Attributes:
        message_id: the id under which a queue took it; None of a target that gives none.
    """

    message_id: str | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """The target said no; it has nothing of it.

    Attributes:
        code: the target's own name of the refusal.
        poison: no other attempt could end otherwise.
        reason: what a poison letter is parked with; None: that it was refused.
        after: the target asked not to be tried again before.
    """

    code: str
    message: str
    poison: bool = False
    reason: ParkedReason | None = None
    after: timedelta | None = None


@dataclass(frozen=True, slots=True)
class NotSent:
    """Nothing went out; the attempt does not count.

    Attributes:
        unreachable: the target could not be reached, rather than time or order forbidding it.
        after: the target asked not to be tried again before.
    """

    why: str
    unreachable: bool = False
    after: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Unknown:
    """It may or may not have gone out: no reply was had, or the reply does not name it."""

    why: str


Outcome = Taken | Refused | NotSent | Unknown
