"""Assign letters to failure groups by the cause of their failure. No other module needs the groups, so it may be late.

A letter that is redriven before it is assigned gets no group. A letter is assigned again when it is parked, and when a
consumer reports its failure.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial

from reprocessing.domain.errors import InvalidSelector
from reprocessing.domain.message.envelope import unpack_attributes
from reprocessing.domain.message.identity import LetterFacts, Selector
from reprocessing.domain.parking_lot.failure_fingerprint import (
    AttemptAnswer,
    FailureCause,
    FailureSigns,
    Reported,
    failure_cause,
)
from reprocessing.domain.replay.attempt_detail import without_quotes
from reprocessing.store import rows
from reprocessing.store.parking_lot import failure_groups
from reprocessing.store.parking_lot.failure_groups import UngroupedLetter

BATCH = 1_000  #: letters in one transaction


def assign_groups(*, batches: int, stop: Callable[[], bool] = lambda: False) -> int:
    """Assign letters to failure groups, up to `batches` batches of 1,000 letters; return how many letters.

    Stop at a batch that another worker has locked, and after a batch if `stop` returns True.
    """
    done = 0
    for _ in range(batches):
        if not (found := failure_groups.ungrouped_letters(limit=BATCH)):
            break
        causes = {letter.id: cause_of(letter) for letter in found}  # before the transaction, which locks
        put = rows.in_transaction(partial(failure_groups.group_letters, found, causes))
        done += put
        if not put or stop():
            break
    return done


def cause_of(letter: UngroupedLetter) -> FailureCause:
    """Return why a letter failed, as far as consumer reports, answers of targets and the letter itself tell it."""
    facts = LetterFacts(
        letter.message_id,
        bytes(letter.body or b""),
        unpack_attributes(bytes(letter.attributes or b"{}")),
        letter.system or {},
    )
    said = letter.type is not None and letter.fingerprint is not None
    return failure_cause(
        FailureSigns(
            letter=facts,
            size=letter.size,
            type=_selector(letter.message_type),
            report=Reported(letter.type or "", letter.fingerprint or "") if said else None,
            answer=AttemptAnswer(letter.outcome, without_quotes(letter.answer or "")) if letter.outcome else None,
            reason=letter.reason,
            detail=letter.detail,
        )
    )


@lru_cache(maxsize=256)
def _selector(text: str) -> Selector | None:
    """Return the selector that says where a letter has its message type; None: the setting is empty or invalid."""
    try:
        return Selector.parse(text) if text else None
    except InvalidSelector:
        return None
