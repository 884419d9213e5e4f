"""Read the attempts and edits that a message's page shows."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, Final

from reprocessing.admin.messages.readable_bytes import duration
from reprocessing.admin.site import labels
from reprocessing.domain.lifecycle import AttemptOutcome, LetterState
from reprocessing.models import Attempt, Letter, Revision

#: Max attempts, and max edits, that a page shows.
MOST: Final = 200
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


def attempts_and_edits(letter: Letter, told: Callable[[str], str]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the attempts and the edits for display, newest first, at most 200 of each.

    `told`: returns the part of an attempt's detail that this person may see.
    """
    attempts = list(letter.history.select_related("target", "run", "wave").order_by("-no")[:MOST])
    kept = letter.revisions.defer("body", "attributes", "body_hash", "previous_body_hash")
    revisions = list(kept.order_by("-no")[:MOST]) if letter.revision_id else []
    oldest_first = revisions[::-1]
    sent = {attempt.pk: _sent(attempt, oldest_first) for attempt in attempts}
    newer = [None, *attempts]
    tries = [
        {**_try(attempt, later, sent[attempt.pk], letter), "detail": told(attempt.detail or "")}
        for attempt, later in zip(attempts, newer, strict=False)
    ]
    return tries, [_edit(revision, attempts, sent) for revision in revisions]


def _sent(attempt: Attempt, revisions: Sequence[Revision]) -> int:
    """Return the number of the last edit before an attempt, which the attempt sent; 0: it sent the captured message.

    `revisions`: all edits, oldest first.
    """
    before = bisect(revisions, attempt.opened_at, key=lambda revision: revision.at)
    return revisions[before - 1].no if before else 0


def _try(attempt: Attempt, later: Attempt | None, revision: int, letter: Letter) -> dict[str, Any]:
    """Return an attempt as values for the template.

    `later`: the attempt after this one, if any. In the result, `mood` sets the colour of the label, and `revision` is
    the number of the edit that was sent, 0 for the captured message.
    """
    outcome = AttemptOutcome(attempt.outcome) if attempt.outcome else None
    ended = attempt.taken_at or attempt.closed_at
    bad = outcome in _BAD or attempt.returned_at is not None or bool(attempt.counts_as_failure)
    return {
        "attempt": attempt, "lasted": _length(ended - attempt.opened_at) if ended else "-",
        "outcome": _WORDS[outcome] if outcome else "open",
        "mood": "bad" if bad else "good" if outcome in _GOOD else "",
        "revision": revision, "followed": _followed(attempt, later, letter),
    }  # fmt: skip


def _edit(revision: Revision, attempts: Sequence[Attempt], sent: dict[int, int]) -> dict[str, Any]:
    return {"revision": revision, "sent_by": sorted(sender.no for sender in attempts if sent[sender.pk] == revision.no)}


def _followed(attempt: Attempt, later: Attempt | None, letter: Letter) -> str:
    parts = []
    if attempt.returned_at and attempt.outcome != AttemptOutcome.RETURNED:
        parts.append(f"came back at {attempt.returned_at:%Y-%m-%d %H:%M:%S} UTC")
    elif attempt.returned_at:
        parts.append(f"came back after {_length(attempt.returned_at - attempt.opened_at)}")
    if later:
        ended = attempt.closed_at or attempt.taken_at or attempt.opened_at
        parts.append(f"tried again {_length(later.opened_at - ended)} later")
    elif attempt.closed_at is None:
        parts.append("awaiting outcome" if attempt.taken_at else "in progress")
    elif letter.state != LetterState.WAITING:
        parts.append(f"the message is {labels.state(letter.state)}")
    else:
        parts.append("the message is queued")
    return ", ".join(parts)


def _length(time: timedelta) -> str:
    """Return a duration as text: in milliseconds below 1 s, in tenths of a second up to 10 s, else as "1 min 5 s"."""
    if time < _SECOND:
        return f"{max(0, time / timedelta(milliseconds=1)):.0f} ms"
    return duration(time) if time > 10 * _SECOND else f"{time / _SECOND:.1f} s"
