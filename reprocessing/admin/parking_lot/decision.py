"""What a person decides about letters of the parking lot, from the page they saw to the deed.

A page can lie: somebody else may have decided meanwhile, and a letter released may be parked again for another reason.
So a page carries, with each letter, since when it was parked, and what would be sent of it; only a letter of which
both are still so is touched.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Final, assert_never

from django.forms import ValidationError

from reprocessing.domain.lifecycle import LetterState
from reprocessing.models import Act, DeadLetter, Review
from reprocessing.pipeline.parking_lot import act_on_parked
from reprocessing.pipeline.parking_lot.act_on_parked import Reviewed
from reprocessing.store import rows
from reprocessing.store.parking_lot import decisions

#: Letters that one page decides about; more of them are a matter for a filter.
MOST: Final = 1_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_SEEN = re.compile(r"(\d{1,18})@(\d{1,18})@(\d{1,18})")


class Deed(StrEnum):
    """What can be decided."""

    RELEASE = "release"
    DISCARD = "discard"
    RESTORE = "restore"
    ASSIGN = "assign"
    NOTE = "note"

    @property
    def permission(self) -> str:
        """What it takes; whoever may discard may take that back."""
        what = {Deed.RESTORE: Deed.DISCARD, Deed.NOTE: Deed.ASSIGN}.get(self, self)
        return f"reprocessing.{what.value}_parkedletter"

    @property
    def takes(self) -> str:
        """The same in words."""
        return f"it takes the permission to {_RIGHTS[self]}"

    @property
    def label(self) -> str:
        """Its button, on a page."""
        return _LABELS[self]

    @property
    def state(self) -> LetterState:
        """Of which letters."""
        return LetterState.DISCARDED if self is Deed.RESTORE else LetterState.PARKED


_LABELS: Final = {
    Deed.RELEASE: "Replay", Deed.DISCARD: "Discard", Deed.RESTORE: "Restore", Deed.ASSIGN: "Assign", Deed.NOTE: "Note",
}  # fmt: skip

_RIGHTS: Final = {
    Deed.RELEASE: "replay parked letters", Deed.DISCARD: "discard parked letters",
    Deed.RESTORE: "discard parked letters", Deed.ASSIGN: "assign parked letters", Deed.NOTE: "assign parked letters",
}  # fmt: skip

Seen = Mapping[int, tuple[int, int]]  # when each letter was parked, in microseconds since 1970; its revision's id, or 0
Arguments = Mapping[str, Any]  # of a deed, as an operation stores them: due, target, to


def packed(letters: Iterable[DeadLetter]) -> str:
    """Letters as a page carries them."""
    seen = (carried(one.pk, one.finished_at, one.revision_id) for one in letters if one.finished_at is not None)
    return ",".join(seen)


def carried(letter: int, since: datetime | None, revision: int | None) -> str:
    """One letter as a page carries it; `revision`: the id of what would be sent, None: of what was captured."""
    return f"{letter}@{stamp(since)}@{revision or 0}"


def unpacked(text: str) -> Seen:
    """The letters that a page carried.

    Raises:
        ValidationError: no page of ours wrote this, or it names too many.
    """
    found = [_SEEN.fullmatch(part) for part in text.split(",")]
    seen = {int(one[1]): (int(one[2]), int(one[3])) for one in found if one}
    if not seen or not all(found):
        raise ValidationError("These letters cannot be read. Go back to the list and select them again.")
    if len(seen) > MOST:
        raise ValidationError(f"These are more than {MOST:,} letters. Select fewer, or all that match a filter.")
    return seen


@dataclass(frozen=True, slots=True)
class Stood:
    """What else a page showed. `assigned`: who saw to each letter; `at`: when it was made. None: it has not said."""

    assigned: Mapping[int, str] | None = None
    at: datetime | None = None


def decide(  # noqa: PLR0913  # each by its name
    deed: Deed, seen: Seen, *, by: str, reason: str, arguments: Arguments | None = None, stood: Stood | None = None
) -> Reviewed:
    """Do it to the letters that are as they were seen; why each of the others was left alone."""
    said = arguments or {}

    def work() -> tuple[dict[int, str], Reviewed]:
        # From here until the commit nobody parks, edits or moves them.
        decisions.lock(seen.keys(), need_lane=False, state=deed.state)
        left = _changed(seen, deed.state)
        if deed is Deed.ASSIGN and stood and stood.assigned is not None:
            left |= _assigned(seen, stood.assigned, said.get("to", ""))
        if deed is Deed.NOTE and stood and stood.at is not None:
            left |= _noted(seen, stood.at, by, reason)
        return left, _act(deed, seen.keys() - left.keys(), by, reason, said)

    left, reviewed = rows.whole(work)
    return Reviewed(reviewed.done, reviewed.refused | left)


def assignees(letters: Iterable[int]) -> str:
    """Who sees to each of these letters, as a page carries it."""
    return json.dumps(dict(DeadLetter.objects.filter(pk__in=list(letters)).values_list("pk", "assigned_to")))


def read_assignees(text: str) -> Mapping[int, str]:
    """What `assignees` wrote.

    Raises:
        ValidationError: no page of ours wrote this.
    """
    try:
        return {int(letter): str(who) for letter, who in json.loads(text).items()}
    except (ValueError, AttributeError, RecursionError):
        raise ValidationError(
            "This page did not say whose these letters were. Go back to the list and select them again."
        ) from None


def _assigned(seen: Seen, was: Mapping[int, str], to: str) -> dict[int, str]:
    """Those that are somebody else's than the page said, or that person's already."""
    parked = DeadLetter.objects.filter(pk__in=seen.keys(), state=LetterState.PARKED.value)
    now = dict(parked.values_list("pk", "assigned_to"))
    left = {pk: f"it is {_whose(who)} already" for pk, who in now.items() if who == to}
    return left | {pk: f"since you looked it is {_whose(who)}" for pk, who in now.items() if was.get(pk, "") != who}


def _whose(who: str) -> str:
    return f"assigned to {who}" if who else "nobody's"


def _noted(seen: Seen, since: datetime, by: str, reason: str) -> dict[int, str]:
    """Those that this person said the same of since the page was made: it was sent twice."""
    twice = Review.objects.filter(act=Act.NOTED, letter__in=seen.keys(), by=by, reason=reason, at__gte=since)
    return dict.fromkeys(twice.values_list("letter_id", flat=True), "this note of yours is there already")


def _act(deed: Deed, letters: Collection[int], by: str, reason: str, arguments: Arguments) -> Reviewed:
    match deed:
        case Deed.RELEASE:
            due, target = arguments.get("due"), arguments.get("target")
            when = datetime.fromisoformat(due) if due else None
            return act_on_parked.release(letters, by=by, reason=reason, due=when, target=target)
        case Deed.DISCARD:
            return act_on_parked.discard(letters, by=by, reason=reason)
        case Deed.RESTORE:
            return act_on_parked.restore(letters, by=by, reason=reason)
        case Deed.ASSIGN:
            return act_on_parked.assign(letters, to=arguments.get("to", ""), by=by, reason=reason)
        case Deed.NOTE:
            return act_on_parked.note(letters, by=by, reason=reason)
        case _ as never:
            assert_never(never)


def _changed(seen: Seen, state: LetterState) -> dict[int, str]:
    """Those that are in this state, but not since the moment that was seen, or that are edited: how so."""
    there = DeadLetter.objects.filter(pk__in=seen.keys(), state=state.value)
    left = dict[int, str]()
    for letter, since, revision in there.values_list("pk", "finished_at", "revision_id"):
        if since is not None and stamp(since) != seen[letter][0]:
            left[letter] = f"it was {state.value} anew since you looked; look again"
        elif (revision or 0) != seen[letter][1]:
            left[letter] = "it was edited since you looked; look again"
    return left


def stamp(since: datetime | None) -> int:
    """A moment, in microseconds since 1970."""
    return 0 if since is None else (since - _EPOCH) // _MICROSECOND


def moment(stamped: int) -> datetime:
    """The moment of a stamp."""
    return _EPOCH + stamped * _MICROSECOND
