"""Decide when automatic redrive stops trying a target that keeps failing, and pauses for a person."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

#: Min failed attempts before a target is given up, because a single failure proves nothing.
FEWEST: Final = 2


@dataclass(frozen=True, slots=True)
class FailingTarget:
    """A target of an automatic run. Its circuit breaker is not closed, and its canaries (test messages) fail.

    Attributes:
        name: the target's name.
        seconds: for how long no message to the target has succeeded. After the run was resumed, the time counts from
            the first attempt since then.
        give_up_after: seconds after which the run stops trying the target; None: never.
        attempts: failed attempts in the last `seconds`.
        of_message: failed attempts of one message: the unfinished message that failed most often; 0: there is none.
        keys: number of ordering keys of the failed messages; a message without a key counts as one key.
        max_attempts: attempts that the DLQ allows for a message.
        has_others: whether the run has other messages for the target than the message of `of_message`.
        has_other_targets: whether the run has messages for a target that is not failing.
        last_failure: how the newest of the failed attempts failed.
    """

    name: str
    seconds: float
    give_up_after: float | None
    attempts: int
    of_message: int
    keys: int
    max_attempts: int
    has_others: bool
    has_other_targets: bool
    last_failure: str


@dataclass(frozen=True, slots=True)
class KeepTrying:
    """Send the next test message (canary) after the circuit breaker's cooldown."""


@dataclass(frozen=True, slots=True)
class ParkMessage:
    """Park the message that keeps failing: the run has no other message for the target. The run continues."""

    why: str


@dataclass(frozen=True, slots=True)
class PauseRun:
    """Pause the run until a person resumes it.

    Attributes:
        why: what happened, with the text of the last failure, which may quote the target's answer.
        public_why: what happened, without the text of the last failure, for notifications.
    """

    why: str
    public_why: str


GiveUp = KeepTrying | ParkMessage | PauseRun


def give_up(target: FailingTarget) -> GiveUp:
    """Return what an automatic run does about a target that keeps failing."""
    if target.give_up_after is None or target.seconds < target.give_up_after or target.has_other_targets:
        return KeepTrying()
    if target.attempts < FEWEST:
        return KeepTrying()
    tried = f"{target.attempts} attempts in {duration(target.seconds)} failed"
    last = f"; the last failure: {target.last_failure}" if target.last_failure else ""
    if target.has_others:
        keys = f"{target.keys} ordering key" if target.keys == 1 else f"{target.keys} ordering keys"
        sentence = f"No message to {target.name} succeeded: {tried}, for {keys}"
        return PauseRun(f"{sentence}{last}.", f"{sentence}.")
    if target.of_message < target.max_attempts:
        return KeepTrying()
    return ParkMessage(f"{tried}, and the run has no other message to test {target.name} with{last}.")


def duration(seconds: float) -> str:
    """Return a duration as people write it: 45 s, 20 min, 24 h, 3 days."""
    for unit, name in ((86_400.0, "days"), (3_600.0, "h"), (60.0, "min")):
        if seconds >= 2 * unit or (name == "h" and seconds >= unit):
            return f"{seconds / unit:.0f} {name}"
    return f"{seconds:.0f} s"
