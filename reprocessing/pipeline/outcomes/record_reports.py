"""Hear what consumers say of single messages: keep it, once, and do what follows for their letters.

A consumer that shares the database reports by `told`, with objects as the endpoint takes them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import partial

from reprocessing.domain.outcomes.consumer_report import Said, Unclear, read
from reprocessing.models import DeadLetterQueue
from reprocessing.pipeline.capture import delete_copies
from reprocessing.pipeline.replay import after_settlement
from reprocessing.store import rows
from reprocessing.store.ordering import lanes
from reprocessing.store.outcomes import acknowledgements, reports
from reprocessing.store.outcomes.acknowledgements import Named
from reprocessing.store.outcomes.reports import Found
from reprocessing.store.parking_lot import failure_groups
from reprocessing.store.replay.settlement import Deletable
from reprocessing.store.safety.spared_attempts import spare_late

Dice = Callable[[], float]

#: Attempts that are moved in one transaction.
_GROUP = 500
_FOREIGN = "it is about a letter that was not sent to a target of this reporter's"
_UNKNOWN = "no letter, or no such attempt of one, has this redrive id"


@dataclass(frozen=True, slots=True)
class Heard:
    """What became of reports. `accepted`: they are new; `refused`: why, by their places."""

    accepted: int = 0
    repeated: int = 0
    refused: dict[int, str] = field(default_factory=dict)


def told(given: Sequence[object], *, reporter: int | None, dice: Dice) -> Heard:
    """Hear reports as parsed JSON has them; repeats change nothing, in any order.

    Args:
        given: objects of message_id, redrive_id, verdict, type, message, fingerprint, at.
        reporter: whose they are; it may speak of letters that were sent to its targets. None: who shares the database
            may speak of all.
        dice: for the backoff of letters that failed.
    """
    clear_ones: dict[int, Said] = {}
    refused: dict[int, str] = {}
    for place, one in enumerate(given):
        match found := read(one):
            case Said():
                clear_ones[place] = found
            case Unclear(why):
                refused[place] = why
    heard = said(list(clear_ones.values()), reporter=reporter, dice=dice)
    places = list(clear_ones)
    refused |= {places[n]: why for n, why in heard.refused.items()}
    return Heard(heard.accepted, heard.repeated, dict(sorted(refused.items())))


def said(some: Sequence[Said], *, reporter: int | None, dice: Dice) -> Heard:
    """Hear reports, each statement once for all of them. Copies of letters that are done are left to the next sweep."""
    if not some:
        return Heard()
    found = reports.find(some, reporter)
    refused = {n: why for n, one in enumerate(some) if (why := _objection(one, found.get(n)))}
    new = {one.digest(reporter): n for n, one in enumerate(some) if n not in refused}
    about = acknowledgements.named({one for n in new.values() if (one := _attempt(found.get(n)))})

    def record() -> set[bytes]:
        _lock(about)
        kept = reports.keep([some[n] for n in new.values()], reporter)
        meant = {_attempt(found.get(new[digest])) for digest in kept}
        _follow([one for one in about if one.attempt_id in meant], dice)
        if failed := [digest for digest in kept if some[new[digest]].verdict != "delivered"]:
            failure_groups.doubt(digests=failed)
        return kept

    kept = rows.whole(record)
    if kept:
        _tell(about)
    return Heard(len(kept), len(some) - len(refused) - len(kept), refused)


def again(*, dice: Dice) -> int:
    """Do what follows from reports that came before it was known which attempts they were about; how many attempts."""
    ids = reports.unheard()
    for first in range(0, len(ids), _GROUP):
        about = acknowledgements.named(ids[first : first + _GROUP])
        delete_copies.everywhere(rows.whole(partial(_hear, about, dice)))
        _tell(about)
    return len(ids)


def _hear(about: Sequence[Named], dice: Dice) -> list[Deletable]:
    _lock(about)
    deletable = _follow(about, dice)
    failure_groups.doubt(attempts=[one.attempt_id for one in about])
    return deletable


def _attempt(found: Found | None) -> int | None:
    return found.attempt_id if found else None


def _objection(one: Said, found: Found | None) -> str:
    if found is not None:
        return "" if found.ours else _FOREIGN
    return "" if one.message_id else _UNKNOWN


def _lock(about: Sequence[Named]) -> None:
    ids = sorted({one.lane_id for one in about})
    lanes.lock(ids, [None] * len(ids))


def _follow(about: Sequence[Named], dice: Dice) -> list[Deletable]:
    """Locked lanes' letters are moved, and the lanes after them."""
    if not about:
        return []
    dlqs = DeadLetterQueue.objects.in_bulk({one.dlq_id for one in about})
    deletable = acknowledgements.believe(
        [one.attempt_id for one in about],
        [dlqs[one.dlq_id].rest(one.attempts, dice(), one).total_seconds() for one in about],
        [one.spent for one in about],
    )
    spare_late([one.attempt_id for one in about])
    ids = sorted({one.lane_id for one in about})
    lanes.advance(ids, [None] * len(ids))
    return deletable


def _tell(about: Collection[Named]) -> None:
    after_settlement.outcomes(of_breakers=[one.breaker_id for one in about], of_runs=[one.run_id for one in about])
