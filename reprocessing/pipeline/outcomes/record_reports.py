"""Record consumer reports (idempotently) and apply them to the letters they are about."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
_FOREIGN = "its message was not sent to a target of this reporter"
_UNKNOWN = "no attempt has this redrive id"


@dataclass(frozen=True, slots=True)
class Heard:
    """How many reports are new and how many are known, and why the others were refused, by their places."""

    accepted: int = 0
    repeated: int = 0
    refused: dict[int, str] = field(default_factory=dict)


def told(given: Sequence[object], *, reporter: int | None, dice: Dice) -> Heard:
    """Record reports as parsed JSON objects. Repeats change nothing, in any order.

    A reporter may report letters that were sent to its targets; None, a caller in the same database, any letter.
    """
    readable: dict[int, Said] = {}
    refused: dict[int, str] = {}
    for place, report in enumerate(given):
        match found := read(report):
            case Said():
                readable[place] = found
            case Unclear(why):
                refused[place] = why
    heard = said(list(readable.values()), reporter=reporter, dice=dice)
    places = list(readable)
    refused |= {places[n]: why for n, why in heard.refused.items()}
    return Heard(heard.accepted, heard.repeated, dict(sorted(refused.items())))


def said(some: Sequence[Said], *, reporter: int | None, dice: Dice) -> Heard:
    """Record reports, with each statement once. Copies of finished letters are left to the next sweep."""
    if not some:
        return Heard()
    found = reports.find(some, reporter)
    refused = {n: why for n, report in enumerate(some) if (why := _objection(report, found.get(n)))}
    new = {report.digest(reporter): n for n, report in enumerate(some) if n not in refused}
    attempts = {n: found[n].attempt_id for n in new.values() if n in found}
    about = acknowledgements.named({attempt for attempt in attempts.values() if attempt})

    def record() -> set[bytes]:
        _lock(about)
        kept = reports.keep([some[n] for n in new.values()], reporter)
        meant = {attempts.get(new[digest]) for digest in kept}
        _apply([attempt for attempt in about if attempt.attempt_id in meant], dice)
        if failed := [digest for digest in kept if some[new[digest]].verdict != "delivered"]:
            failure_groups.doubt(digests=failed)
        return kept

    kept = rows.whole(record)
    if kept:
        after_settlement.attempts(about)
    return Heard(len(kept), len(some) - len(refused) - len(kept), refused)


def again(*, dice: Dice) -> int:
    """Apply reports that came before their attempts were known. Return the number of attempts."""
    ids = reports.unheard()
    for first in range(0, len(ids), _GROUP):
        about = acknowledgements.named(ids[first : first + _GROUP])
        delete_copies.everywhere(rows.whole(partial(_apply_late, about, dice)))
        after_settlement.attempts(about)
    return len(ids)


def _apply_late(about: Sequence[Named], dice: Dice) -> list[Deletable]:
    _lock(about)
    deletable = _apply(about, dice)
    failure_groups.doubt(attempts=[attempt.attempt_id for attempt in about])
    return deletable


def _objection(report: Said, found: Found | None) -> str:
    if found is not None:
        return "" if found.ours else _FOREIGN
    return "" if report.message_id else _UNKNOWN


def _lock(about: Sequence[Named]) -> None:
    ids = sorted({attempt.lane_id for attempt in about})
    lanes.lock(ids, [None] * len(ids))


def _apply(about: Sequence[Named], dice: Dice) -> list[Deletable]:
    if not about:
        return []
    dlqs = DeadLetterQueue.objects.in_bulk({attempt.dlq_id for attempt in about})
    deletable = acknowledgements.believe(
        [attempt.attempt_id for attempt in about],
        [dlqs[attempt.dlq_id].rest(attempt.attempts, dice(), attempt).total_seconds() for attempt in about],
        [attempt.spent for attempt in about],
    )
    spare_late([attempt.attempt_id for attempt in about])
    ids = sorted({attempt.lane_id for attempt in about})
    lanes.advance(ids, [None] * len(ids))
    return deletable
