"""Sort letters by what they died of, beside the pump: nothing waits for it, and it waits for nobody.

What is replayed before its turn comes is not sorted at all; a letter that is parked, or of which a failure is reported,
is sorted anew.
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

#: Letters whose causes are written in one transaction.
BATCH = 1_000


def letters(*, batches: int, stop: Callable[[], bool] = lambda: False) -> int:
    """Sort up to so many batches of letters; how many letters were.

    Causes are found before anything is locked. A batch that others hold, or are sorting, ends it: it has another turn.
    """
    done = 0
    for _ in range(batches):
        found = [] if stop() else failure_groups.unsorted(limit=BATCH)
        if not found:
            break
        causes = {one.id: cause_of(one) for one in found}
        put = rows.whole(partial(failure_groups.put, found, causes))
        done += put
        if not put:
            break
    return done


def cause_of(letter: Unsorted) -> Cause:
    """What one letter died of, as far as it says."""
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
    """The dlq's selector of types; None where it cannot be read: others' letters are sorted all the same."""
    try:
        return Selector.parse(text) if text else None
    except SelectorIsUnclear:
        return None
