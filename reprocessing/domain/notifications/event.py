"""Define the events that people are notified of, with their facts: ids, counts, names and times, but no payload."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from reprocessing.domain.message.safe_text import visible

#: Max characters of a text among the facts of an event; longer texts are cut.
LONGEST_FACT: Final = 300
_LONGEST_SUBJECT: Final = 200


class EventKind(StrEnum):
    """What happened: a condition that lasts, such as an open breaker, or a moment, such as the end of a run."""

    BREAKER_OPEN = "breaker_open"
    RUN_STOPPED = "run_stopped"
    RUN_FINISHED = "run_finished"
    RUN_STALLED = "run_stalled"
    FAILURE_GROUP_NEW = "failure_group_new"
    FAILURE_GROUP_REOPENED = "failure_group_reopened"
    PARKED_MANY = "parked_many"
    PARKED_OLD = "parked_old"
    MESSAGES_EXPIRING = "messages_expiring"
    DLQ_GROWING = "dlq_growing"
    REDRIVE_LOOP = "redrive_loop"
    BEAT_SILENT = "beat_silent"
    WORKERS_SILENT = "workers_silent"
    RESTORE_DETECTED = "restore_detected"
    DOCTOR_WORSE = "doctor_worse"
    DLQ_DISCOVERED = "dlq_discovered"
    APPROVAL_REQUESTED = "approval_requested"
    ACTED_ALONE = "acted_alone"

    @property
    def is_moment(self) -> bool:
        """Return whether the event is a moment, such as the end of a run, and not a condition that lasts."""
        return self in _MOMENTS

    @property
    def is_urgent(self) -> bool:
        """Return whether a person is needed now. Events that are not urgent may wait a minute for a notification."""
        return self in _URGENT

    @property
    def reopens_incident(self) -> bool:
        """Return whether a condition that returns within a minute reopens its last incident (its reported event).

        Otherwise, a new incident is opened: for moments, for requested approvals, and for conditions that only a person
        can end.
        """
        return self not in _MOMENTS | _ENDED_BY_A_PERSON | {EventKind.APPROVAL_REQUESTED}


_MOMENTS: Final = frozenset({
    EventKind.RUN_FINISHED, EventKind.FAILURE_GROUP_NEW, EventKind.FAILURE_GROUP_REOPENED, EventKind.DLQ_DISCOVERED,
    EventKind.ACTED_ALONE,
})  # fmt: skip
_ENDED_BY_A_PERSON: Final = frozenset({EventKind.RUN_STOPPED, EventKind.REDRIVE_LOOP, EventKind.RESTORE_DETECTED})
_URGENT: Final = _ENDED_BY_A_PERSON | {
    EventKind.BREAKER_OPEN, EventKind.RUN_STALLED, EventKind.MESSAGES_EXPIRING, EventKind.BEAT_SILENT,
    EventKind.WORKERS_SILENT, EventKind.ACTED_ALONE,
}  # fmt: skip

#: The required facts of each kind, and its optional facts.
#: `dlq`, `target`, `run`, `queue`, `account` and `region` are names. `seconds` is an age or a duration. `threshold` is
#: a count, or an age in seconds. `backup_time` is a time. `why` and `finding` are sentences of this service. `title` is
#: a failure group's title, which quotes no message. `what` is a person's action in words, `how` says how a request
#: for approval ended, `by` and `who` are people. `..._id` is the id in the address of the admin's page. All other
#: facts are counts.
FACTS: Final[Mapping[EventKind, tuple[frozenset[str], frozenset[str]]]] = {
    kind: (frozenset(needed.split()), frozenset(useful.split()))
    for kind, needed, useful in (
        (EventKind.BREAKER_OPEN, "target breaker_id why", "dlq messages seconds"),
        (EventKind.RUN_STOPPED, "run run_id dlq why", "messages by"),
        (EventKind.RUN_FINISHED, "run run_id dlq", "messages delivered presumed duplicates parked discarded seconds"),
        (EventKind.RUN_STALLED, "run run_id dlq why", "messages seconds"),
        (EventKind.FAILURE_GROUP_NEW, "group_id dlq title", "messages"),
        (EventKind.FAILURE_GROUP_REOPENED, "group_id dlq title", "messages"),
        (EventKind.PARKED_MANY, "dlq messages threshold", "seconds"),
        (EventKind.PARKED_OLD, "dlq messages seconds", "threshold"),
        (EventKind.MESSAGES_EXPIRING, "dlq messages seconds", ""),
        (EventKind.DLQ_GROWING, "dlq arrived drained seconds", "messages"),
        (EventKind.REDRIVE_LOOP, "run run_id dlq messages", "why"),
        (EventKind.BEAT_SILENT, "seconds", ""),
        (EventKind.WORKERS_SILENT, "queue seconds", "messages"),
        (EventKind.RESTORE_DETECTED, "", "backup_time messages"),
        (EventKind.DOCTOR_WORSE, "errors warnings", "finding"),
        (EventKind.APPROVAL_REQUESTED, "approval_id what by dlq how", "messages"),
        (EventKind.ACTED_ALONE, "approval_id what by dlq who why", "messages how"),
        (EventKind.DLQ_DISCOVERED, "queue account region sources", "messages"),
    )
}


@dataclass(frozen=True, slots=True)
class Event:
    """A moment, or the current state of a condition (see `EventKind`).

    Attributes:
        subject: the object that the event is about, such as "breaker:12" or "dlq:3".
        facts: see `FACTS`. No payload, attribute's value or ordering key, and no error text that may quote these.
        dlq_id: the DLQ that the event is about; None if the event is about a target or the whole service.

    Raises:
        ValueError: a fact is missing or not allowed for the kind, or the subject is empty or too long.
    """

    kind: EventKind
    subject: str
    facts: Mapping[str, str | int | float]
    dlq_id: int | None = None

    def __post_init__(self) -> None:
        needed, useful = FACTS[self.kind]
        if missing := needed - self.facts.keys():
            raise ValueError(f"{self.kind} lacks the facts {', '.join(sorted(missing))}.")
        if unknown := self.facts.keys() - needed - useful:
            raise ValueError(f"{self.kind} has no facts named {', '.join(sorted(unknown))}. Add them to FACTS.")
        if not 0 < len(self.subject) <= _LONGEST_SUBJECT:
            raise ValueError(f"{self.kind} needs a subject of 1 to {_LONGEST_SUBJECT} characters.")

    @property
    def shown_facts(self) -> dict[str, str | int | float]:
        """Return the facts to store. Texts are cut to 300 characters, on one line, with invisible characters shown."""
        return {name: _line(fact) if isinstance(fact, str) else fact for name, fact in self.facts.items()}


def _line(text: str) -> str:
    shown = visible(" ".join(text.split()))
    return shown if len(shown) <= LONGEST_FACT else shown[: LONGEST_FACT - 1] + "…"
