"""Decide whether a message that has used up its attempts is at fault, or its target.

A message that failed while others of its target went well is at fault. Where nothing else went well since, the target
may be down: the attempts do not count, and the circuit breaker decides when the next one goes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

#: Seconds after a message's last failure for which the outcomes of others are waited for.
PATIENCE: Final = 60.0


@dataclass(frozen=True, slots=True)
class LastFailures:
    """What is known about the failed attempts that used up a message's limit.

    Attributes:
        seconds_ago: seconds since the newest of them failed.
        success_since_first: another message, sent to the same target after the first of them, went well.
        success_since_last: another message, sent after the newest of them, went well.
    """

    seconds_ago: float
    success_since_first: bool
    success_since_last: bool


@dataclass(frozen=True, slots=True)
class MessageFails:
    """The message is at fault: it is parked."""


@dataclass(frozen=True, slots=True)
class TargetFails:
    """Nothing went well since the message failed first: the target may be down."""


@dataclass(frozen=True, slots=True)
class NotKnownYet:
    """The outcomes of other messages are waited for."""


FailureCause = MessageFails | TargetFails | NotKnownYet


def failure_cause(failures: LastFailures | None) -> FailureCause:
    """Return whose fault it is that a message has no attempts left; `None`: no attempt of this service failed."""
    if failures is None or failures.success_since_last:
        return MessageFails()
    if failures.seconds_ago < PATIENCE:
        return NotKnownYet()
    return MessageFails() if failures.success_since_first else TargetFails()
