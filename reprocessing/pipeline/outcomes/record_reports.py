"""Record reports of consumers, and apply them to the letters. A repeated report is recorded only once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from reprocessing.domain.outcomes.consumer_report import ConsumerReport, InvalidReport, read
from reprocessing.models import DeadLetterQueue
from reprocessing.pipeline.capture import delete_copies
from reprocessing.pipeline.replay import after_settlement
from reprocessing.store import rows
from reprocessing.store.ordering import lane_state, lanes
from reprocessing.store.outcomes import acknowledgements, reports
from reprocessing.store.outcomes.acknowledgements import ReportedAttempt
from reprocessing.store.outcomes.reports import ReportMatch
from reprocessing.store.parking_lot import failure_groups
from reprocessing.store.replay.settlement import Deletable
from reprocessing.store.safety.outage_attempts import spare_late

Dice = Callable[[], float]

#: Most attempts in one transaction.
_GROUP = 500
_FOREIGN = "the message was not sent to a target of this reporter"
_UNKNOWN = "no attempt has this redrive id"


@dataclass(frozen=True, slots=True)
class Recorded:
    """What became of the reports of one request.

    `accepted`: how many were new. `repeated`: how many were known already. `refused`: why others were refused, by their
    position in the request (from 0).
    """

    accepted: int = 0
    repeated: int = 0
    refused: dict[int, str] = field(default_factory=dict)


def record_json(given: Sequence[object], *, reporter: int | None, dice: Dice) -> Recorded:
    """Record reports, given as parsed JSON values; return how many were recorded. A repeated report changes nothing.

    `reporter`: the id of the reporter (token) that sent them, which may report only on letters sent to its own targets.
    None: a consumer with access to this database, which may report on any letter. `dice`: returns random numbers for
    backoffs.
    """
    readable: dict[int, ConsumerReport] = {}
    refused: dict[int, str] = {}
    for place, report in enumerate(given):
        match found := read(report):
            case ConsumerReport():
                readable[place] = found
            case InvalidReport(why):
                refused[place] = why
    recorded = record_parsed(list(readable.values()), reporter=reporter, dice=dice)
    places = list(readable)
    refused |= {places[n]: why for n, why in recorded.refused.items()}
    return Recorded(recorded.accepted, recorded.repeated, dict(sorted(refused.items())))


def record_parsed(some: Sequence[ConsumerReport], *, reporter: int | None, dice: Dice) -> Recorded:
    """Record reports in one transaction, and apply them; return how many were recorded.

    The next sweep (`recover.py`) deletes copies of letters that are then finished. `reporter`: the id of the reporter
    (token) that sent them; None: a consumer with access to this database. `dice`: returns random numbers for backoffs.
    """
    if not some:
        return Recorded()
    found = reports.match_reports(some, reporter)
    refused = {n: why for n, report in enumerate(some) if (why := _objection(report, found.get(n)))}
    digests = reports.report_digests(some, reporter)
    new = {digests[n]: n for n in range(len(some)) if n not in refused}
    attempts = {n: found[n].attempt_id for n in new.values() if n in found}
    about = acknowledgements.reported_attempts({attempt for attempt in attempts.values() if attempt})

    def record() -> set[bytes]:
        _lock(about)
        kept = reports.write_reports([some[n] for n in new.values()], reporter, list(new))
        meant = {attempts.get(new[digest]) for digest in kept}
        _apply([attempt for attempt in about if attempt.attempt_id in meant], dice)
        if failed := [digest for digest in kept if some[new[digest]].verdict != "delivered"]:
            failure_groups.mark_for_regrouping(digests=failed)
        return kept

    kept = rows.in_transaction(record)
    if kept:
        after_settlement.update_after_attempts(about)
    return Recorded(len(kept), len(some) - len(refused) - len(kept), refused)


def apply_late(*, dice: Dice) -> int:
    """Apply reports that arrived before their attempts were recorded; return the number of these attempts.

    A fast consumer may report before this service has recorded that its target accepted the message. `dice`: returns
    random numbers for backoffs.
    """
    ids = reports.unmatched_attempts()
    for first in range(0, len(ids), _GROUP):
        about = acknowledgements.reported_attempts(ids[first : first + _GROUP])
        delete_copies.delete_from_dlqs(rows.in_transaction(partial(_apply_late, about, dice)))
        after_settlement.update_after_attempts(about)
    return len(ids)


def _apply_late(about: Sequence[ReportedAttempt], dice: Dice) -> list[Deletable]:
    _lock(about)
    deletable = _apply(about, dice)
    failure_groups.mark_for_regrouping(attempts=[attempt.attempt_id for attempt in about])
    return deletable


def _objection(report: ConsumerReport, found: ReportMatch | None) -> str:
    if found is not None:
        return "" if found.ours else _FOREIGN
    return "" if report.message_id else _UNKNOWN


def _lock(about: Sequence[ReportedAttempt]) -> None:
    ids = sorted({attempt.lane_id for attempt in about})
    lanes.lock(ids, [None] * len(ids))


def _apply(about: Sequence[ReportedAttempt], dice: Dice) -> list[Deletable]:
    if not about:
        return []
    dlqs = DeadLetterQueue.objects.in_bulk({attempt.dlq_id for attempt in about})
    deletable = acknowledgements.apply_reports(
        [attempt.attempt_id for attempt in about],
        [dlqs[attempt.dlq_id].backoff_delay(attempt.attempts, dice(), attempt).total_seconds() for attempt in about],
        [attempt.spent for attempt in about],
    )
    spare_late([attempt.attempt_id for attempt in about])
    ids = sorted({attempt.lane_id for attempt in about})
    lane_state.advance(ids, [None] * len(ids))
    return deletable
