"""Check conditions that last: many or old parked messages, DLQ growth, expiring messages, stalled runs."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial
from typing import Final

from reprocessing.conf import Conf
from reprocessing.domain.message.arn import name_of
from reprocessing.domain.notifications import standstill
from reprocessing.domain.notifications.dlq_growth import NOTES, growth
from reprocessing.domain.notifications.event import Event, EventKind
from reprocessing.domain.notifications.expiry import seconds_left
from reprocessing.domain.notifications.hysteresis import holds
from reprocessing.domain.notifications.standstill import Standstill
from reprocessing.domain.notifications.subjects import of_dlq, of_run
from reprocessing.models.dead_letter_queue import Mode
from reprocessing.store import rows
from reprocessing.store.aws import metrics
from reprocessing.store.dlqs import dlq_status
from reprocessing.store.dlqs.dlq_status import Watch
from reprocessing.store.notifications import dlq_notes, heartbeats, stalled_runs
from reprocessing.store.notifications.open_incidents import left_open, open_incidents
from reprocessing.store.notifications.outbox import announce, conclude
from reprocessing.store.notifications.parked_messages import ParkedMessages, parked_messages
from reprocessing.store.notifications.stalled_runs import StalledRun, UnseenEmpty
from reprocessing.store.outcomes import pending_outcomes

Open = Collection[tuple[EventKind, str]]

_POLLED: Final = (
    EventKind.PARKED_MANY,
    EventKind.PARKED_OLD,
    EventKind.MESSAGES_EXPIRING,
    EventKind.DLQ_GROWING,
    EventKind.RUN_STALLED,
)
#: After so many seconds without a check, workers and beat are assumed to have been down.
GAP: Final = 120.0
#: Seconds for which they have to run again before a run counts as stalled.
_BACK_FOR: Final = 300.0
#: Seconds are rounded down to this, so that an incident is not written again with every check.
_STEP: Final = 600


def look(conf: Conf) -> None:
    """Announce the conditions that hold, and conclude those that no longer hold.

    A dozen statements, each of which reads maintained counts, rows of DLQs, some hundred lanes of each running run, and
    the sent messages of each target: their cost does not depend on how many messages there are. Called outside
    transactions; commits by itself.
    """
    back_for = heartbeats.looked(gap=GAP)
    is_open = open_incidents(_POLLED)
    watches = dlq_status.watches(copies=False)
    uncaptured = _uncaptured(watches, conf)
    found = [
        *_parked(conf, is_open),
        *_expiring(conf, watches, uncaptured),
        *_growing(conf, watches, uncaptured, is_open),
        *_stalled(conf, back_for),
    ]
    there = {(event.kind, event.subject) for event in found}
    over = [place for place in is_open if place not in there] + left_open()
    if found or over:
        rows.whole(partial(_write, found, over))


def _write(found: Collection[Event], over: Open) -> None:
    announce(found)
    conclude(over)


def _parked(conf: Conf, is_open: Open) -> Iterator[Event]:
    most, oldest = conf.thresholds.parked_count, conf.thresholds.parked_age.total_seconds()
    for lot in parked_messages():
        subject = of_dlq(lot.dlq_id)
        if holds(lot.messages, most, is_open=(EventKind.PARKED_MANY, subject) in is_open):
            yield _of_lot(EventKind.PARKED_MANY, lot, threshold=most)
        if holds(lot.seconds, oldest, is_open=(EventKind.PARKED_OLD, subject) in is_open):
            yield _of_lot(EventKind.PARKED_OLD, lot, seconds=_in_steps(lot.seconds), threshold=round(oldest))


def _of_lot(kind: EventKind, lot: ParkedMessages, **more: int) -> Event:
    return Event(kind, of_dlq(lot.dlq_id), {"dlq": lot.name, "messages": lot.messages, **more}, dlq_id=lot.dlq_id)


def _uncaptured(watches: Collection[Watch], conf: Conf) -> dict[int, int]:
    """Return the uncaptured messages of each DLQ. A DLQ in mode automatic counts only while its captures fail."""
    ours = dlq_status.in_sight(visibility=conf.receive_visibility, count_lag=conf.count_lag.total_seconds())
    return {watch.id: _left_out(watch, ours.get(watch.id, 0)) for watch in watches}


def _left_out(watch: Watch, ours: int) -> int:
    if watch.mode == Mode.AUTOMATIC:
        return watch.depth_visible or 0 if watch.trouble else 0
    return dlq_status.uncaptured(watch, ours)


def _expiring(conf: Conf, watches: Collection[Watch], uncaptured: dict[int, int]) -> Iterator[Event]:
    waited = dlq_notes.uncaptured_for(uncaptured)
    within = conf.thresholds.expires_within.total_seconds()
    for watch in watches:
        if watch.id not in waited:
            continue
        left = seconds_left(waited=waited[watch.id], retention=watch.retention, within=within)
        if left is not None:
            facts: dict[str, str | int | float] = {
                "dlq": watch.name,
                "messages": uncaptured[watch.id],
                "seconds": _in_steps(left),
            }
            yield Event(EventKind.MESSAGES_EXPIRING, of_dlq(watch.id), facts, dlq_id=watch.id)


def _growing(
    conf: Conf, watches: Collection[Watch], uncaptured: dict[int, int], is_open: Open
) -> Iterator[Event]:  # fmt: skip
    within = conf.thresholds.growing_for.total_seconds()
    if metrics.is_due("dlq notes", every=within / NOTES):
        dlq_notes.note(uncaptured, within=within)
    notes = dlq_notes.notes(within=within)
    for watch in watches:
        place = (EventKind.DLQ_GROWING, of_dlq(watch.id))
        found = growth(notes.get(watch.id, []), within=within, is_open=place in is_open)
        if found is not None:
            facts: dict[str, str | int | float] = {
                "dlq": watch.name, "arrived": found.arrived, "drained": found.drained,
                "seconds": _in_steps(found.seconds), "messages": found.backlog,
            }  # fmt: skip
            yield Event(*place, facts, dlq_id=watch.id)


def _stalled(conf: Conf, back_for: float) -> Iterator[Event]:
    """Yield at most one event for each run; why sent messages wait comes before why others are not sent."""
    long = conf.thresholds.stalled_for.total_seconds()
    if back_for < min(long, _BACK_FOR):
        return
    awaiting = stalled_runs.runs_that_await(_never_empty(conf), long=long)
    runs = {run.run_id: run for run in [*stalled_runs.runs_that_wait(long=long), *awaiting]}
    yield from map(_of_run, runs.values())


def _never_empty(conf: Conf) -> list[UnseenEmpty]:
    return [
        UnseenEmpty(target.dlq_id, target.target_id, target.unsettled, (target.now - since).total_seconds())
        for target in pending_outcomes.of_targets(count_lag=conf.count_lag.total_seconds())
        if (since := target.again_from or target.taken_at) and pending_outcomes.is_never_empty(target)
    ]


def _of_run(run: StalledRun) -> Event:
    why = standstill.why(Standstill(run.cause), name_of(run.target))
    facts: dict[str, str | int | float] = {
        "run": run.name, "run_id": run.run_id, "dlq": run.dlq, "why": why, "messages": run.messages,
        "seconds": _in_steps(run.seconds),
    }  # fmt: skip
    return Event(EventKind.RUN_STALLED, of_run(run.run_id), facts, dlq_id=run.dlq_id)


def _in_steps(seconds: float) -> int:
    return int(seconds) // _STEP * _STEP if seconds >= _STEP else int(seconds) // 60 * 60
