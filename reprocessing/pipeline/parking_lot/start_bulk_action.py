"""Check the filter of a bulk action before it starts.

A bulk action is one action on all messages that a filter matches.
"""

from __future__ import annotations

from typing import Final

from reprocessing.domain.errors import InvalidFilter
from reprocessing.domain.lifecycle import LetterState
from reprocessing.domain.parking_lot.message_filter import MessageFilter
from reprocessing.models import BulkActionKind
from reprocessing.store.search import filter_conditions

#: The state that messages must have, for each kind of bulk action.
STATES: Final = dict.fromkeys(BulkActionKind, LetterState.PARKED) | {BulkActionKind.RESTORE: LetterState.DISCARDED}


def require_decidable(kind: BulkActionKind, sieve: MessageFilter) -> None:
    """Refuse a filter that may match messages on which the action is not possible.

    Raises:
        InvalidFilter: the filter selects messages of another state, or cannot find all messages that it describes.
    """
    if sieve.states != (STATES[kind].value,):
        raise InvalidFilter(f"This is only for {STATES[kind].value} messages. Select messages in the list of these.")
    filter_conditions.require_exhaustive(sieve)
