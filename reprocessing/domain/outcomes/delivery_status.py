"""Determine whether a message was delivered, by what evidence this is known, and since when."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final

from reprocessing.domain.lifecycle import AttemptOutcome, LetterState


class OutcomeSource(StrEnum):
    """How the outcome of a message is known."""

    ACCEPTED = "accepted"  #: the target accepted the message
    PRESUMED = "presumed"  #: the message did not come back, or a person presumed it after a restore
    ACKNOWLEDGED = "acknowledged"  #: the consumer reported success
    FAILED = "failed"  #: the message came back, was refused, or the consumer reported a failure
    SILENT = "silent"  #: the consumer did not report in time
    UNKNOWN = "unknown"  #: the message may have been sent
    OPEN = "open"  #: the outcome is not known yet
    UNSENT = "unsent"  #: the message was not sent


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryFacts:
    """The records about a letter and about the newest attempt that was sent.

    Attributes:
        state: the letter's state.
        presumed: whether the letter counts as delivered because it did not come back.
        acknowledges: whether the target's consumer reports outcomes.
        watched: whether the service captures the DLQ to which the target's failed messages go.
        outcome: the attempt's outcome. None if it is not known yet, or if no attempt was sent.
        sent_at: when the attempt began. None if no attempt was sent.
        taken_at: when the target accepted the message.
        deadline: the time until which the message may come back, or its consumer may report.
        closed_at: when the attempt got its outcome.
        returned_at: when the message came back to a DLQ.
        finished_at: when the letter got its final state.
        denied: whether the consumer reported a failure.
        said: the verdict (such as "delivered") of the report that decides the outcome. None if no report decides it.
        said_at: when the consumer reported this verdict.
        said_by: the name of the consumer that reported. Empty for a consumer that shares the service's database.
    """

    state: str
    presumed: bool
    acknowledges: bool
    watched: bool
    outcome: str | None = None
    sent_at: datetime | None = None
    taken_at: datetime | None = None
    deadline: datetime | None = None
    closed_at: datetime | None = None
    returned_at: datetime | None = None
    finished_at: datetime | None = None
    denied: bool = False
    said: str | None = None
    said_at: datetime | None = None
    said_by: str = ""


@dataclass(frozen=True, slots=True)
class DeliveryStatus:
    """What is known about a letter's delivery.

    `how`: how the outcome is known. `since`: when it became known. `worked`: whether the delivery succeeded. None means
    that this is not known, or only presumed.
    """

    how: OutcomeSource
    sentence: str
    since: datetime | None
    worked: bool | None = None


_ENDS: Final = {
    LetterState.PARKED: " It is parked for review.",
    LetterState.WAITING: " It will be sent again.",
    LetterState.DISCARDED: " It was discarded.",
}


def status_of_letter(facts: DeliveryFacts) -> DeliveryStatus:
    """Return what is known about the delivery of a letter, with a sentence for people."""
    state = LetterState(facts.state)
    if state is LetterState.DUPLICATE:
        text = "It was not sent: an equal message was delivered."
        return DeliveryStatus(OutcomeSource.UNSENT, text, facts.finished_at)
    if state is LetterState.DELIVERED and facts.presumed and facts.outcome in {None, AttemptOutcome.UNKNOWN}:
        text = "It is presumed delivered: a person decided this after PostgreSQL was restored from a backup."
        return DeliveryStatus(OutcomeSource.PRESUMED, text, facts.finished_at)
    if facts.sent_at is None:
        end = "" if state is LetterState.WAITING else _ENDS.get(state, "")
        return DeliveryStatus(OutcomeSource.UNSENT, f"It has not been sent.{end}", facts.finished_at)
    if state is LetterState.DELIVERED:
        return _delivered(facts)
    if state in {LetterState.SENDING, LetterState.AWAITING}:
        return _open(facts)
    return _undelivered(facts, _ENDS.get(state, ""))


def _delivered(facts: DeliveryFacts) -> DeliveryStatus:
    if facts.outcome == AttemptOutcome.ACKNOWLEDGED or facts.said == "delivered":
        since = facts.said_at or facts.closed_at
        text = f"It worked: {_consumer(facts)} reported success."
        return DeliveryStatus(OutcomeSource.ACKNOWLEDGED, text, since, worked=True)
    if facts.presumed:
        but = "its consumer has not reported, but " if facts.acknowledges else ""
        text = f"It is presumed delivered: {but}it has not come back to the DLQ, where a capture would have found it."
        return DeliveryStatus(OutcomeSource.PRESUMED, text, facts.finished_at)
    text = "Its target accepted it. What the consumer did with it is not known."
    return DeliveryStatus(OutcomeSource.ACCEPTED, text, facts.taken_at or facts.closed_at, worked=True)


def _open(facts: DeliveryFacts) -> DeliveryStatus:
    if facts.taken_at is None:
        return DeliveryStatus(OutcomeSource.OPEN, "Its outcome is not known yet: it is being sent.", facts.sent_at)
    waits = f"it may come back{_until(facts)}"
    if facts.watched:
        waits += ", unless its target is found empty before that"
    if facts.acknowledges:
        then = "it is presumed delivered if it does not come back" if facts.watched else "it is parked"
        waits = f"its consumer can report{_until(facts)}; after that, {then}"
    text = f"Its outcome is not known yet: its target accepted it, and {waits}."
    return DeliveryStatus(OutcomeSource.OPEN, text, facts.taken_at)


def _undelivered(facts: DeliveryFacts, end: str) -> DeliveryStatus:
    if facts.returned_at is not None:
        text = f"It failed: it came back to a DLQ.{end}"
        return DeliveryStatus(OutcomeSource.FAILED, text, facts.returned_at, worked=False)
    if facts.denied:
        since = facts.said_at or facts.closed_at
        text = f"It failed: {_consumer(facts)} reported a failure.{end}"
        return DeliveryStatus(OutcomeSource.FAILED, text, since, worked=False)
    match facts.outcome:
        case AttemptOutcome.REFUSED:
            text = f"It failed: its target refused it.{end}"
            return DeliveryStatus(OutcomeSource.FAILED, text, facts.closed_at, worked=False)
        case AttemptOutcome.SILENT:
            text = (
                "Its outcome is not known: its target accepted it, and its consumer could report"
                f"{_until(facts)}, but did not.{end}"
            )
            return DeliveryStatus(OutcomeSource.SILENT, text, facts.closed_at)
        case _:
            waits = f", and it may come back{_until(facts)}" if facts.closed_at is None and facts.deadline else ""
            text = f"Its outcome is not known: it may have been sent, and no answer came{waits}.{end}"
            return DeliveryStatus(OutcomeSource.UNKNOWN, text, facts.closed_at)


def _consumer(facts: DeliveryFacts) -> str:
    return f"its consumer ({facts.said_by})" if facts.said_by else "its consumer"


def _until(facts: DeliveryFacts) -> str:
    return f" until {facts.deadline.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC" if facts.deadline else ""
