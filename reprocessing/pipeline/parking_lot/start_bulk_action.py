"""Check the filter of a bulk action before the action starts, and explain why an action was refused.

A bulk action is one action on all messages that a filter matches.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from reprocessing.domain.errors import InvalidFilter
from reprocessing.domain.lifecycle import LetterState
from reprocessing.domain.parking_lot.message_filter import MessageFilter
from reprocessing.models import BulkActionKind
from reprocessing.store.parking_lot import filtered_letters
from reprocessing.store.search import decided_meanwhile, filter_conditions

#: The state that messages must have, for each kind of bulk action.
STATES: Final = dict.fromkeys(BulkActionKind, LetterState.PARKED) | {BulkActionKind.RESTORE: LetterState.DISCARDED}


def require_decidable(kind: BulkActionKind, criteria: MessageFilter) -> None:
    """Check that a bulk action is possible on all messages that match a filter, and that a search finds all of them.

    Raises:
        InvalidFilter: the filter selects messages of another state, or its text search would leave out older messages.
    """
    if criteria.states != (STATES[kind].value,):
        state = STATES[kind].value
        raise InvalidFilter(f"This is only for {state} messages. Select messages in the list of {state} messages.")
    filter_conditions.require_exhaustive(criteria)


def why_changed(
    kind: BulkActionKind, criteria: MessageFilter, *, previewed: int, matching: int, since: datetime
) -> str:
    """Return a text that says that fewer or more messages match a bulk action than its preview showed, and why.

    If fewer match, the text names the people who changed the others since the preview, if they are known. `previewed`:
    how many matched in the preview. `matching`: how many match now. `since`: the time of the preview.
    """
    state = STATES[kind].value
    first = f"{filtered_letters.counted(previewed)} {'was' if previewed == 1 else 'were'} previewed, "
    if matching > previewed:
        return (
            f"{first}but {filtered_letters.counted(matching)} {'matches' if matching == 1 else 'match'} now: messages "
            "were added to the filter after the preview, for example because somebody assigned them."
        )
    if matching:
        still = f"only {filtered_letters.counted(matching)} {'is' if matching == 1 else 'are'} unchanged and {state}"
    else:
        still = f"none is {state} any more"
    who = [
        f"{one.by} {one.act} {filtered_letters.counted(one.letters)} at {one.at:%H:%M:%S} UTC"
        for one in decided_meanwhile.decided_since(criteria, since)
    ]
    return f"{first if previewed else ''}{still}{': ' if who else ''}{', '.join(who)}."
