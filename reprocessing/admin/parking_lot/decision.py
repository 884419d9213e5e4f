"""Act on the parked messages that a page showed, but skip messages that changed after the page was made.

After the page was made, another person may have edited a message, or the message may have been released and parked
again. So the page contains, for each message, the time of parking and the id of its last edit. A message is skipped if
one of these two values has changed.
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
from reprocessing.models import AuditAct, AuditEntry, Letter
from reprocessing.pipeline.parking_lot import act_on_parked
from reprocessing.pipeline.parking_lot.act_on_parked import Reviewed
from reprocessing.store import rows
from reprocessing.store.parking_lot import decisions

#: Max messages that one page acts on; more messages need a bulk action.
MOST: Final = 1_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_SEEN = re.compile(r"(\d{1,18})@(\d{1,18})@(\d{1,18})")


class DecisionKind(StrEnum):
    """A decision that a person can make about parked or discarded messages."""

    RELEASE = "release"
    DISCARD = "discard"
    RESTORE = "restore"
    ASSIGN = "assign"
    NOTE = "note"

    @property
    def permission(self) -> str:
        """Return the permission that the decision requires."""
        what = {DecisionKind.RESTORE: DecisionKind.DISCARD, DecisionKind.NOTE: DecisionKind.ASSIGN}.get(self, self)
        return f"reprocessing.{what.value}_parkedletter"

    @property
    def needs_approval(self) -> bool:
        """Return whether the decision can need a second person: all decisions except assigning and adding notes."""
        return self not in {DecisionKind.ASSIGN, DecisionKind.NOTE}

    @property
    def takes(self) -> str:
        """Return which permission the decision requires, as the end of a sentence: "it needs the permission to ..."."""
        return f"it needs the permission to {_ALLOWS[self.permission.partition('.')[2]]}"

    @property
    def label(self) -> str:
        """Return the label of the button for this decision."""
        return self.value.capitalize()

    @property
    def state(self) -> LetterState:
        """Return the state that a message must have for this decision."""
        return LetterState.DISCARDED if self is DecisionKind.RESTORE else LetterState.PARKED


_ALLOWS: Final = {
    "release_parkedletter": "release parked messages", "discard_parkedletter": "discard parked messages",
    "assign_parkedletter": "assign parked messages",
}  # fmt: skip

SeenMessages = Mapping[
    int, tuple[int, int]
]  # by letter id: when the message was parked, in microseconds since 1970, and the id of its last edit, or 0
Arguments = Mapping[str, Any]  # of a decision: due (time), target (id), to (assignee)


def pack_messages(letters: Iterable[Letter]) -> str:
    """Return the text of a hidden field with these messages and their state now, which `unpack_messages` reads."""
    parked = (letter for letter in letters if letter.finished_at is not None)
    return ",".join(pack_message(letter.pk, letter.finished_at, letter.revision_id) for letter in parked)


def pack_message(letter: int, since: datetime | None, revision: int | None) -> str:
    """Return the part of a hidden field's text for one message.

    `since`: when the message was parked or discarded. `revision`: id of its last edit; None: it was not edited.
    """
    return f"{letter}@{to_stamp(since)}@{revision or 0}"


def unpack_messages(text: str) -> SeenMessages:
    """Return the messages in a hidden field, each with the state that it had when the page was made.

    Raises:
        ValidationError: `pack_messages` did not write the text, or it has more than 1,000 messages.
    """
    found = [_SEEN.fullmatch(part) for part in text.split(",")]
    seen = {int(part[1]): (int(part[2]), int(part[3])) for part in found if part}
    if not seen or not all(found):
        raise ValidationError("The selection is not valid. Go back to the list and select the messages again.")
    if len(seen) > MOST:
        raise ValidationError(f"More than {MOST:,} messages are selected. Select fewer, or all that match the filter.")
    return seen


@dataclass(frozen=True, slots=True)
class PageState:
    """What the page showed: the assignee of each message (`assigned`, by letter id), and when it was made (`at`)."""

    assigned: Mapping[int, str] | None = None
    at: datetime | None = None


def decide(  # noqa: PLR0913  # all are passed by name
    decision: DecisionKind,
    seen: SeenMessages,
    *,
    by: str,
    reason: str,
    arguments: Arguments | None = None,
    page_state: PageState | None = None,
) -> Reviewed:
    """Act on the messages that a page showed, in one transaction. Skip messages that changed after the page was made.

    Return the ids of the changed messages, and the reason for each skipped message.
    """
    given = arguments or {}

    def work() -> tuple[dict[int, str], Reviewed]:
        # Until the commit, the messages are locked: nobody else can park, edit or release them.
        decisions.lock_letters(seen.keys(), need_lane=False, state=decision.state)
        left = _changed(seen, decision.state)
        if decision is DecisionKind.ASSIGN and page_state and page_state.assigned is not None:
            left |= _assigned(seen, page_state.assigned, given.get("to", ""))
        if decision is DecisionKind.NOTE and page_state and page_state.at is not None:
            left |= _noted(seen, page_state.at, by, reason)
        return left, _act(decision, seen.keys() - left.keys(), by, reason, given)

    left, reviewed = rows.in_transaction(work)
    return Reviewed(reviewed.done, reviewed.refused | left)


def assignees(letters: Iterable[int]) -> str:
    """Return the text of a hidden field with the assignee of each message; `read_assignees` reads it."""
    return json.dumps(dict(Letter.objects.filter(pk__in=list(letters)).values_list("pk", "assigned_to")))


def read_assignees(text: str) -> Mapping[int, str]:
    """Return the assignee of each message, by letter id, from the text that `assignees` wrote into a hidden field.

    Raises:
        ValidationError: `assignees` did not write the text.
    """
    try:
        return {int(letter): str(who) for letter, who in json.loads(text).items()}
    except (ValueError, AttributeError, RecursionError):
        raise ValidationError("The page is incomplete. Go back to the list and select the messages again.") from None


def _assigned(seen: SeenMessages, was: Mapping[int, str], to: str) -> dict[int, str]:
    """Return the messages that an assignment skips: for each letter id the reason.

    A message is skipped if it is already assigned to `to`, or if its assignee changed after the page was made.
    """
    parked = Letter.objects.filter(pk__in=seen.keys(), state=LetterState.PARKED.value)
    now = dict(parked.values_list("pk", "assigned_to"))
    left = {pk: f"it is {_whose(who)} already" for pk, who in now.items() if who == to}
    return left | {pk: f"it is now {_whose(who)}" for pk, who in now.items() if was.get(pk, "") != who}


def _whose(who: str) -> str:
    return f"assigned to {who}" if who else "assigned to nobody"


def _noted(seen: SeenMessages, since: datetime, by: str, reason: str) -> dict[int, str]:
    """Return the messages that already have this note, because the form was submitted twice: id and reason."""
    twice = AuditEntry.objects.filter(act=AuditAct.NOTED, letter__in=seen.keys(), by=by, reason=reason, at__gte=since)
    return dict.fromkeys(twice.values_list("letter_id", flat=True), "it has this note already")


def _act(decision: DecisionKind, letters: Collection[int], by: str, reason: str, arguments: Arguments) -> Reviewed:
    match decision:
        case DecisionKind.RELEASE:
            due, target = arguments.get("due"), arguments.get("target")
            when = datetime.fromisoformat(due) if due else None
            return act_on_parked.release(letters, by=by, reason=reason, due=when, target=target)
        case DecisionKind.DISCARD:
            return act_on_parked.discard(letters, by=by, reason=reason)
        case DecisionKind.RESTORE:
            return act_on_parked.restore(letters, by=by, reason=reason)
        case DecisionKind.ASSIGN:
            return act_on_parked.assign(letters, to=arguments.get("to", ""), by=by, reason=reason)
        case DecisionKind.NOTE:
            return act_on_parked.note(letters, by=by, reason=reason)
        case _ as never:
            assert_never(never)


def _changed(seen: SeenMessages, state: LetterState) -> dict[int, str]:
    """Return the messages that were edited, or parked again, after the page was made: for each id the reason."""
    letters = Letter.objects.filter(pk__in=seen.keys(), state=state.value)
    left = dict[int, str]()
    for letter, since, revision in letters.values_list("pk", "finished_at", "revision_id"):
        if since is not None and to_stamp(since) != seen[letter][0]:
            left[letter] = f"it was {state.value} again after you opened the page; check it again"
        elif (revision or 0) != seen[letter][1]:
            left[letter] = "it was edited after you opened the page; check it again"
    return left


def to_stamp(since: datetime | None) -> int:
    """Return a time as the number of microseconds since 1970; None: 0."""
    return 0 if since is None else (since - _EPOCH) // _MICROSECOND


def from_stamp(stamped: int) -> datetime:
    """Return the time that is this number of microseconds after the start of 1970, in UTC."""
    return _EPOCH + stamped * _MICROSECOND
