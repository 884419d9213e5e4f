"""A letter's attempts as they followed each other: when, where to, how long, how it ended, and what came of it."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from reprocessing.admin.messages.readable_bytes import duration, visible
from reprocessing.domain.lifecycle import AttemptOutcome, LetterState
from reprocessing.models import Attempt, DeadLetter, Revision

#: Attempts and revisions that a page shows, the newest.
MOST: Final = 200
_SECOND: Final = timedelta(seconds=1)

_WELL: Final = {AttemptOutcome.ACCEPTED, AttemptOutcome.ABSENT, AttemptOutcome.ACKNOWLEDGED}
_ILL: Final = {AttemptOutcome.RETURNED, AttemptOutcome.REFUSED, AttemptOutcome.FAILED}
_WORDS: Final = {
    AttemptOutcome.ACCEPTED: "taken",
    AttemptOutcome.ABSENT: "presumed delivered",
    AttemptOutcome.RETURNED: "came back",
    AttemptOutcome.REFUSED: "refused",
    AttemptOutcome.NOT_SENT: "not sent",
    AttemptOutcome.UNKNOWN: "outcome unknown",
    AttemptOutcome.ACKNOWLEDGED: "its consumer says it worked",
    AttemptOutcome.FAILED: "its consumer says it failed",
    AttemptOutcome.SILENT: "no word from its consumer",
}


@dataclass(frozen=True, slots=True)
class Try:
    """One attempt.

    Attributes:
        mood: "good", "bad" or "" for its chip.
        lasted: from its intent until the target took it, or it was closed.
        revision: what was sent: the number of the edit, 0 for what was captured.
        followed: what came of it.
    """

    no: int
    target_id: int
    target: str
    began: datetime
    lasted: str
    outcome: str
    mood: str
    detail: str
    run: str
    wave: int | None
    revision: int
    followed: str
    sent_as: str


@dataclass(frozen=True, slots=True)
class Edit:
    """One revision, and the numbers of the attempts that sent it."""

    no: int
    at: datetime
    by: str
    reason: str
    size: int
    new_key: bool
    sent_by: tuple[int, ...]


def of(letter: DeadLetter) -> tuple[list[Try], list[Edit]]:
    """Its attempts and its edits, newest first."""
    attempts = list(letter.history.select_related("target", "run", "wave").order_by("-no")[:MOST])
    kept = letter.revisions.defer("body", "attributes", "body_hash", "former_hash")
    revisions = list(kept.order_by("-no")[:MOST]) if letter.revision_id else []
    oldest_first = revisions[::-1]
    sent = {one.pk: _sent(one, oldest_first) for one in attempts}
    newer = [None, *attempts]
    tries = [_try(one, later, sent[one.pk], letter) for one, later in zip(attempts, newer, strict=False)]
    return tries, [_edit(one, attempts, sent) for one in revisions]


def _sent(attempt: Attempt, revisions: Sequence[Revision]) -> int:
    """The revision that an attempt sent: letters are edited while they are parked, and parked ones are not sent."""
    before = bisect(revisions, attempt.opened_at, key=lambda one: one.at)
    return revisions[before - 1].no if before else 0


def _try(one: Attempt, later: Attempt | None, revision: int, letter: DeadLetter) -> Try:
    outcome = AttemptOutcome(one.outcome) if one.outcome else None
    ended = one.taken_at or one.closed_at
    ill = outcome in _ILL or one.returned_at is not None or bool(one.ill)
    return Try(
        no=one.no,
        target_id=one.target_id,
        target=str(one.target),
        began=one.opened_at,
        lasted=_length(ended - one.opened_at) if ended else "-",
        outcome=_WORDS[outcome] if outcome else "open",
        mood="bad" if ill else "good" if outcome in _WELL else "",
        detail=visible(one.detail or ""),
        run=one.run.name if one.run else "",
        wave=one.wave.no if one.wave else None,
        revision=revision,
        followed=_followed(one, later, letter),
        sent_as=visible(one.sent_message_id or ""),
    )


def _edit(one: Revision, attempts: Sequence[Attempt], sent: dict[int, int]) -> Edit:
    by = tuple(sorted(each.no for each in attempts if sent[each.pk] == one.no))
    return Edit(one.no, one.at, one.by, one.reason, one.size, one.idempotency_key is not None, by)


def _followed(one: Attempt, later: Attempt | None, letter: DeadLetter) -> str:
    parts = []
    if one.returned_at and one.outcome != AttemptOutcome.RETURNED:
        parts.append(f"it came back at {one.returned_at:%Y-%m-%d %H:%M:%S} UTC")
    elif one.returned_at:
        parts.append(f"back after {_length(one.returned_at - one.opened_at)}")
    if later:
        ended = one.closed_at or one.taken_at or one.opened_at
        parts.append(f"tried again {_length(later.opened_at - ended)} later")
    elif one.closed_at is None:
        parts.append("its outcome is awaited" if one.taken_at else "under way")
    elif letter.state != LetterState.WAITING:
        parts.append(f"the letter is {letter.state}")
    else:
        parts.append("the letter waits")
    return ", ".join(parts)


def _length(time: timedelta) -> str:
    """Tenths and hundredths of a second where they count."""
    if time < _SECOND:
        return f"{max(0, time / timedelta(milliseconds=1)):.0f} ms"
    return duration(time) if time > 10 * _SECOND else f"{time / _SECOND:.1f} s"
