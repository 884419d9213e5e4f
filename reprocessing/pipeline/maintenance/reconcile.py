"""Record what a person decides about letters in doubt after a restore, group by group."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from reprocessing.domain.errors import BackupIsUnreconciled
from reprocessing.domain.maintenance.restore_doubt import Finding
from reprocessing.models.system import Word
from reprocessing.pipeline.capture import delete_copies
from reprocessing.store import rows
from reprocessing.store.maintenance import restore_doubts, restore_hold
from reprocessing.store.maintenance.restore_doubts import Doubted

GROUP = 500  #: letters in one transaction
#: Decisions by class. A letter that is still in its DLQ cannot be called delivered: it would be lost.
MAY_BE: Mapping[str, tuple[Word, ...]] = {
    "finished": (Word.DELIVERED, Word.PARKED, Word.REPLAY),
    "unfinished": (Word.REPLAY, Word.PARKED),
    "unknown": (Word.REPLAY, Word.PARKED),
}


def letters(dlq: int | None = None) -> Iterator[list[Doubted]]:
    """Yield the undecided letters in groups."""
    above = 0
    while found := restore_doubts.page(dlq=dlq, above=above, limit=GROUP):
        yield found
        above = found[-1].letter_id


def decide(
    words: Mapping[str, Word], *, dlq: int | None, by: str, reason: str, heard: Callable[[int], None] = lambda _: None
) -> int:
    """Decide about the undecided letters of a DLQ (None: of all); return how many. Each group is one transaction.

    `words` holds the decision for each class of letters; `heard` is called after each group with the number so far.

    Raises:
        BackupIsUnreconciled: nothing is held, so nothing is in doubt.
    """
    if restore_hold.standing() is None:
        raise BackupIsUnreconciled("Nothing is held after a restore, so nothing is to be decided.")
    restore_hold.doubt_arrived()
    done = 0
    for group in letters(dlq):
        for kind, word in words.items():
            these = [letter for letter in group if Finding(letter.finding).kind == kind]
            if these:
                decided, deletable = rows.whole(partial(restore_doubts.decide, these, word, by=by, reason=reason))
                delete_copies.everywhere(deletable)
                done += decided
        heard(done)
    return done
