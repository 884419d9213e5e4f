"""Decide whether a message that has used up its attempts is at fault, or the target.

The message is at fault if other messages to its target succeeded after its first attempt. If no other message
succeeded, the target may be down. Then the attempts do not count, and the circuit breaker decides when the next attempt
is made.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

#: How many seconds after a message's last failure the service waits for outcomes of other messages.
OUTCOMES_AWAITED: Final = 60.0
#: Why a lane waits while the cause is not known yet, as text for people.
WAITS_FOR_CAUSE: Final = (
    "the first message has used up its attempts; the service waits for outcomes of other messages until "
    f"{OUTCOMES_AWAITED:g} s after its last failure, to decide whether it is parked or the circuit breaker opens"
)


@dataclass(frozen=True, slots=True)
class LastFailures:
    """What is known about the failed attempts of a message that has used up its attempts.

    Attributes:
        seconds_ago: seconds since the newest attempt failed.
        success_since_first: whether another message, sent to the same target after the first attempt, succeeded.
        success_since_last: whether another message, sent to the same target after the newest attempt, succeeded.
    """

    seconds_ago: float
    success_since_first: bool
    success_since_last: bool


@dataclass(frozen=True, slots=True)
class MessageFails:
    """The message is at fault, so it is parked."""


@dataclass(frozen=True, slots=True)
class TargetFails:
    """The target may be down: no other message to it succeeded since the message was first sent."""


@dataclass(frozen=True, slots=True)
class NotKnownYet:
    """It is not known yet who is at fault. The decision waits for the outcomes of other messages."""


FailureCause = MessageFails | TargetFails | NotKnownYet


def failure_cause(failures: LastFailures | None) -> FailureCause:
    """Return whether the message or its target is at fault, for a message that has no attempts left.

    `failures` is None if no attempt of this service failed, because another redrive tool had used up the attempts.
    """
    if failures is None or failures.success_since_last:
        return MessageFails()
    if failures.seconds_ago < OUTCOMES_AWAITED:
        return NotKnownYet()
    return MessageFails() if failures.success_since_first else TargetFails()
