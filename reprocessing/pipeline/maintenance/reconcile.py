"""Record what a person decides about letters in doubt: after a restore, it may be unknown whether they were sent."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from reprocessing.domain.errors import RestoreUnresolved
from reprocessing.domain.maintenance.restore_doubt import Finding
from reprocessing.models.system import RestoreDecision
from reprocessing.pipeline.capture import delete_copies
from reprocessing.store import rows
from reprocessing.store.maintenance import restore_doubts, restore_hold
from reprocessing.store.maintenance.restore_doubts import DoubtedLetter

GROUP = 500  #: letters in one transaction
#: The allowed decisions for each class of letters. Letters of the class `finished` are not in their DLQ any more. Only
#: they can be called delivered: a message that is still in its DLQ would be lost.
ALLOWED_DECISIONS: Mapping[str, tuple[RestoreDecision, ...]] = {
    "finished": (RestoreDecision.DELIVERED, RestoreDecision.PARKED, RestoreDecision.SEND_AGAIN),
    "unfinished": (RestoreDecision.SEND_AGAIN, RestoreDecision.PARKED),
    "unknown": (RestoreDecision.SEND_AGAIN, RestoreDecision.PARKED),
}


def undecided_groups(dlq: int | None = None) -> Iterator[list[DoubtedLetter]]:
    """Yield the letters in doubt about which nobody has decided yet, in lists of up to 500.

    `dlq`: the id of their DLQ; None: all DLQs.
    """
    above = 0
    while found := restore_doubts.doubted_letters(dlq=dlq, above=above, limit=GROUP):
        yield found
        above = found[-1].letter_id


def decide(
    words: Mapping[str, RestoreDecision],
    *,
    dlq: int | None,
    by: str,
    reason: str,
    on_progress: Callable[[int], None] = lambda _: None,
) -> int:
    """Apply a person's decisions to the letters in doubt; return the number of letters.

    Args:
        words: the decision for each class of letters: finished, unfinished, unknown.
        dlq: the id of the letters' DLQ; None: all DLQs.
        by: who decides.
        reason: why.
        on_progress: called after each group of 500 letters, with the number of letters so far.

    Raises:
        RestoreUnresolved: no restore of PostgreSQL was detected, so no letter is in doubt.
    """
    if restore_hold.current_hold() is None:
        raise RestoreUnresolved("Nothing is held after a restore, so nothing is to be decided.")
    restore_hold.doubt_newly_captured()
    done = 0
    for group in undecided_groups(dlq):
        for kind, word in words.items():
            these = [letter for letter in group if Finding(letter.finding).kind == kind]
            if these:
                decided, deletable = rows.in_transaction(
                    partial(restore_doubts.record_decision, these, word, by=by, reason=reason)
                )
                delete_copies.delete_from_dlqs(deletable)
                done += decided
        on_progress(done)
    return done
