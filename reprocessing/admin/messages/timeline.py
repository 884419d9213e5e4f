"""Read the attempts and edits that a message's page shows, and put them and all other events in one order."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain
from typing import Any, Final

from reprocessing.admin.messages.readable_bytes import duration
from reprocessing.admin.site import labels
from reprocessing.domain.lifecycle import AttemptOutcome, LetterState, ParkedReason
from reprocessing.domain.message.arn import resource_name
from reprocessing.models import Attempt, AuditAct, AuditEntry, Letter, Payload, Revision

#: Max attempts, and max edits, that a page shows.
MOST: Final = 200
#: Max events of the history that a page shows.
MOST_EVENTS: Final = 60
#: Actions that do not change the message. They are left out here, and shown in the page's audit log.
_VIEWS: Final = (AuditAct.REVEALED, AuditAct.EXPORTED)
_SECOND: Final = timedelta(seconds=1)

_GOOD: Final = {AttemptOutcome.ACCEPTED, AttemptOutcome.ABSENT, AttemptOutcome.ACKNOWLEDGED}
_BAD: Final = {AttemptOutcome.RETURNED, AttemptOutcome.REFUSED, AttemptOutcome.FAILED}
_WORDS: Final = {
    AttemptOutcome.ACCEPTED: "accepted",
    AttemptOutcome.ABSENT: "presumed delivered",
    AttemptOutcome.RETURNED: "came back",
    AttemptOutcome.REFUSED: "refused",
    AttemptOutcome.NOT_SENT: "not sent",
    AttemptOutcome.UNKNOWN: "outcome unknown",
    AttemptOutcome.ACKNOWLEDGED: "consumer reported success",
    AttemptOutcome.FAILED: "consumer reported failure",
    AttemptOutcome.SILENT: "no consumer report",
}


def attempts_and_edits(
    letter: Letter, detail_of: Callable[[str], str]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the attempts and the edits for display, newest first, at most 200 of each.

    `detail_of`: function that takes the detail of an attempt (a text that may quote the payload), and returns the part
    that this person may see.
    """
    attempts = list(letter.history.select_related("target", "run", "wave").order_by("-no")[:MOST])
    kept = letter.revisions.defer("body", "attributes", "body_hash", "previous_body_hash")
    revisions = list(kept.order_by("-no")[:MOST]) if letter.revision_id else []
    oldest_first = revisions[::-1]
    sent = {attempt.pk: _sent(attempt, oldest_first) for attempt in attempts}
    newer, ends = [None, *attempts], _ends_of_parking(letter)
    tries = [
        {**_try(attempt, later, sent[attempt.pk], letter, ends), "detail": detail_of(attempt.detail or "")}
        for attempt, later in zip(attempts, newer, strict=False)
    ]
    return tries, [_edit(revision, attempts, sent) for revision in revisions]


@dataclass(frozen=True, slots=True)
class Event:
    """One event in the history of a message.

    Attributes:
        mood: the colour of its mark: "good", "bad" or empty.
        by, why: the person who acted, and the reason that the person gave; empty: the event is not a person's action.
        note: more about the event.
        address: the URL to which the note links; empty: no link.
        tried: the attempt that the event is about, as `attempts_and_edits` returns it; None: it is about no attempt.
    """

    at: datetime
    label: str
    mood: str = ""
    by: str = ""
    why: str = ""
    note: str = ""
    address: str = ""
    tried: dict[str, Any] | None = None


def history(
    letter: Letter, tries: Iterable[dict[str, Any]], edits: Iterable[dict[str, Any]], group_address: str
) -> tuple[list[Event], int]:
    """Return the newest events of a message, newest first, and the number of older events that are left out.

    `tries`, `edits`: the lists that `attempts_and_edits` returned. `group_address`: the URL of the failure group.
    """
    decisions = list(letter.reviews.exclude(act__in=_VIEWS).order_by("-at", "-pk")[:MOST])
    events = [
        *_own_events(letter, decisions, group_address),
        *(
            Event(tried["attempt"].opened_at, f"Attempt {tried['attempt'].no}", tried["mood"], tried=tried)
            for tried in tries
        ),
        *(_edited(edit["revision"]) for edit in edits),
        *chain.from_iterable(map(_decided, decisions)),
    ]
    events.sort(key=lambda event: event.at, reverse=True)  # stable: events at equal times keep this order
    return events[:MOST_EVENTS], max(0, len(events) - MOST_EVENTS)


def _own_events(letter: Letter, decisions: Sequence[AuditEntry], group_address: str) -> Iterator[Event]:
    """Yield the events that are stored in the row of the message: its end, failure group, capture and first send."""
    if letter.finished_at is not None:
        yield from _ended(letter, letter.finished_at, decisions)
    if letter.group is not None and letter.grouped_at is not None:
        yield Event(
            letter.grouped_at, "Assigned to a failure group", note=str(letter.group.shown), address=group_address
        )
    earlier = f"Other tools had redriven it {letter.earlier} times before." if letter.earlier else ""
    yield Event(letter.captured_at, f"Captured from {letter.dlq.name}", note=earlier)
    yield Event(letter.first_sent_at, _first_send(letter))


def _first_send(letter: Letter) -> str:
    """Return a text that says to which queue the message was first sent.

    The source queue is known only if SQS itself moved the message to the DLQ.
    """
    system = Payload.objects.filter(letter=letter).values_list("system", flat=True).first()
    if system is None:
        return "Sent"  # the payload was deleted, and with it the name of the source queue
    if source := system.get("DeadLetterQueueSourceArn"):
        return f"Sent to {resource_name(source)}, where it failed"
    return f"Sent to {letter.dlq.name}; SQS named no source queue"


def _ended(letter: Letter, at: datetime, decisions: Sequence[AuditEntry]) -> Iterator[Event]:
    match LetterState(letter.state):
        case LetterState.PARKED:
            yield Event(at, "Parked", "bad", note=ParkedReason(letter.reason).sentence)
        case LetterState.DELIVERED:
            yield Event(at, "Presumed delivered" if letter.presumed else "Delivered", "good")
        case LetterState.DUPLICATE:
            yield Event(at, "Closed as a duplicate", note="An equal message was delivered.")
        case LetterState.DISCARDED if not any(entry.act == AuditAct.DISCARDED for entry in decisions[:1]):
            yield Event(at, "Discarded", note=f"By the rule {letter.rule.name}." if letter.rule else "By a rule.")
        case _:
            return


def _edited(revision: Revision) -> Event:
    key = " It changed the idempotency key." if revision.idempotency_key is not None else ""
    return Event(
        revision.at, f"Edit {revision.no}", by=revision.by, why=revision.reason, note=f"{revision.size:,} bytes.{key}",
        address="#edits",
    )  # fmt: skip


def _decided(entry: AuditEntry) -> Iterator[Event]:
    """Yield the event of a person's action. For a release or discard, also yield the event that the message was parked.

    The row of the message no longer has that event, but the audit entry has it.
    """
    if entry.act == AuditAct.EDITED:  # `_edited` has the event
        return
    label = entry.get_act_display()
    yield Event(entry.at, label[:1].upper() + label[1:], by=entry.by, why=entry.reason)
    found = _parked_reason(entry) if entry.act in {AuditAct.RELEASED, AuditAct.DISCARDED} else ""
    if found and (at := entry.before.get("parked_at")):
        yield Event(datetime.fromisoformat(at), "Parked", "bad", note=ParkedReason(found).sentence)


def _sent(attempt: Attempt, revisions: Sequence[Revision]) -> int:
    """Return the number of the edit that an attempt sent, which is the last edit before the attempt.

    0: the attempt sent the captured message. `revisions`: all edits, oldest first.
    """
    before = bisect(revisions, attempt.opened_at, key=lambda revision: revision.at)
    return revisions[before - 1].no if before else 0


def _ends_of_parking(letter: Letter) -> list[datetime]:
    """Return when people released or discarded the parked message, newest first."""
    entries = letter.reviews.filter(act__in=(AuditAct.RELEASED, AuditAct.DISCARDED)).order_by("-at", "-pk")[:MOST]
    return [entry.at for entry in entries if _parked_reason(entry)]


def _parked_reason(entry: AuditEntry) -> str:
    """Return why the message was parked when a person acted on it (`entry`); empty: it was not parked."""
    found = str(entry.before.get("reason", "")) if isinstance(entry.before, dict) else ""
    return found if found in set(ParkedReason) else ""


def _try(
    attempt: Attempt, later: Attempt | None, revision: int, letter: Letter, ends: Sequence[datetime]
) -> dict[str, Any]:
    """Return an attempt as values for the template.

    `later`: the next attempt; None: there is none. `revision`: number of the edit that the attempt sent; 0: it sent the
    captured message. `ends`: the times that `_ends_of_parking` returns. In the result, `mood` is the label's colour.
    """
    outcome = AttemptOutcome(attempt.outcome) if attempt.outcome else None
    ended = attempt.taken_at or attempt.closed_at
    bad = outcome in _BAD or attempt.returned_at is not None or bool(attempt.counts_as_failure)
    return {
        "attempt": attempt, "lasted": _length(ended - attempt.opened_at) if ended else "-",
        "outcome": f"{_WORDS[outcome] if outcome else 'open'}{', does not count' if attempt.spared else ''}",
        "mood": "bad" if bad else "good" if outcome in _GOOD else "",
        "revision": revision, "followed": _followed(attempt, later, letter, ends),
    }  # fmt: skip


def _edit(revision: Revision, attempts: Sequence[Attempt], sent: dict[int, int]) -> dict[str, Any]:
    return {"revision": revision, "sent_by": sorted(sender.no for sender in attempts if sent[sender.pk] == revision.no)}


def _followed(attempt: Attempt, later: Attempt | None, letter: Letter, ends: Sequence[datetime]) -> str:
    """Return in words what happened after an attempt, until the next attempt.

    `later`: the next attempt; None: there is none. `ends`: the times that `_ends_of_parking` returns.
    """
    parts = []
    if attempt.returned_at and attempt.outcome != AttemptOutcome.RETURNED:
        parts.append(f"came back at {attempt.returned_at:%Y-%m-%d %H:%M:%S} UTC")
    elif attempt.returned_at:
        parts.append(f"came back after {_length(attempt.returned_at - attempt.opened_at)}")
    ended = attempt.closed_at or attempt.taken_at or attempt.opened_at
    if any(ended <= end and (later is None or end <= later.opened_at) for end in ends):
        parts.append("the message was parked")
    elif later:
        parts.append(f"tried again {_length(later.opened_at - ended)} later")
    elif attempt.closed_at is None:
        parts.append("awaiting outcome" if attempt.taken_at else "in progress")
    elif letter.state == LetterState.PARKED:
        parts.append("the message was parked")
    else:
        parts.append(f"the message is {labels.state(letter.state, letter.presumed)}")
    return ", ".join(parts)


def _length(time: timedelta) -> str:
    """Return a duration as text: in milliseconds below 1 s, in tenths of a second up to 10 s, else as "1 min 5 s"."""
    if time < _SECOND:
        return f"{max(0, time / timedelta(milliseconds=1)):.0f} ms"
    return duration(time) if time > 10 * _SECOND else f"{time / _SECOND:.1f} s"
