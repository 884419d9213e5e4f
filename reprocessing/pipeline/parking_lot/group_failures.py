"""Assign letters to failure groups by why they failed. Nothing waits for it.

A letter that is redriven before its turn gets no group; one that is parked, or reported as failed, is assigned again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial

from reprocessing.domain.errors import SelectorIsUnclear
from reprocessing.domain.message.envelope import unpack
from reprocessing.domain.message.identity import LetterFacts, Selector
from reprocessing.domain.parking_lot.failure_fingerprint import Answer, Cause, Reported, Signs, cause
from reprocessing.store import rows
from reprocessing.store.parking_lot import failure_groups
from reprocessing.store.parking_lot.failure_groups import Unsorted

BATCH = 1_000  #: letters in one transaction


def letters(*, batches: int, stop: Callable[[], bool] = lambda: False) -> int:
    """Assign up to so many batches of letters; return how many letters. It ends at a batch that others hold."""
    done = 0
    for _ in range(batches):
        found = [] if stop() else failure_groups.unsorted(limit=BATCH)
        if not found:
            break
        causes = {letter.id: cause_of(letter) for letter in found}  # before anything is locked
        put = rows.whole(partial(failure_groups.put, found, causes))
        done += put
        if not put:
            break
    return done


def cause_of(letter: Unsorted) -> Cause:
    """Return why a letter failed, as far as is known."""
    facts = LetterFacts(
        letter.message_id, bytes(letter.body or b""), unpack(bytes(letter.attributes or b"{}")), letter.system or {}
    )
    said = letter.type is not None and letter.fingerprint is not None
    return cause(
        Signs(
            letter=facts,
            size=letter.size,
            type=_selector(letter.message_type),
            report=Reported(letter.type or "", letter.fingerprint or "") if said else None,
            answer=Answer(letter.outcome, letter.answer or "") if letter.outcome else None,
            reason=letter.reason,
            detail=letter.detail,
        )
    )


@lru_cache(maxsize=256)
def _selector(text: str) -> Selector | None:
    """Return the DLQ's selector of message types; None if it cannot be parsed."""
    try:
        return Selector.parse(text) if text else None
    except SelectorIsUnclear:
        return None
