"""Check the conditions that people are notified of: parked messages, growing DLQs, expiring messages, stalled runs."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial
from typing import Final, assert_never

from reprocessing.conf import Conf
from reprocessing.domain.message.arn import resource_name
from reprocessing.domain.notifications import standstill
from reprocessing.domain.notifications.dlq_growth import NOTES, Growth, GrowthUnknown, NotGrowing, growth
from reprocessing.domain.notifications.event import Event, EventKind
from reprocessing.domain.notifications.expiry import seconds_left
from reprocessing.domain.notifications.hysteresis import holds
from reprocessing.domain.notifications.observation import Holds, HoldsNot, NotKnown, Observation
from reprocessing.domain.notifications.standstill import Standstill
from reprocessing.domain.notifications.subjects import of_dlq, of_run
from reprocessing.pipeline.runs import plan_obstacles
from reprocessing.store import rows
from reprocessing.store.aws import metrics
from reprocessing.store.dlqs import dlq_status
from reprocessing.store.dlqs.dlq_status import DlqStatus
from reprocessing.store.notifications import dlq_samples, heartbeats, stalled_runs
from reprocessing.store.notifications.open_incidents import open_incidents, orphaned_incidents
from reprocessing.store.notifications.outbox import announce, conclude
from reprocessing.store.notifications.parked_messages import ParkedMessages, parked_messages
from reprocessing.store.notifications.stalled_runs import OverdueOutcomes, StalledRun
from reprocessing.store.outcomes import pending_outcomes

#: An incident: the kind of its event, and its subject (such as a DLQ).
Place = tuple[EventKind, str]
#: The open incidents.
Open = Collection[Place]

_POLLED: Final = (
    EventKind.PARKED_MANY,
    EventKind.PARKED_OLD,
    EventKind.MESSAGES_EXPIRING,
    EventKind.DLQ_GROWING,
    EventKind.RUN_STALLED,
)
#: If the last check is longer ago than this (seconds), workers or beat are assumed to have been down in between.
GAP: Final = 120.0
#: Seconds for which workers and beat must have run again before a run counts as stalled.
_BACK_FOR: Final = 300.0
#: Ages of 10 minutes or more are rounded down to a multiple of this (seconds), so that an incident is rarely rewritten.
_STEP: Final = 600


def check_conditions(conf: Conf) -> None:
    """Open an incident for each condition that is true, such as too many parked messages; end incidents that are over.

    An incident is an open problem of which people are notified. If it is not known whether a condition is true, its
    incident stays as it is. The cost does not depend on the number of messages. Call this function outside
    transactions: it commits by itself.
    """
    back_for = heartbeats.record_check(gap=GAP)
    is_open = open_incidents(_POLLED)
    watches = dlq_status.dlq_statuses(copies=False)
    uncaptured = _uncaptured(watches, conf)
    observations = [
        *_parked(conf, is_open),
        *_expiring(conf, watches, uncaptured),
        *_growing(conf, watches, uncaptured, is_open),
        *_stalled(conf, back_for, is_open),
    ]
    found, over = _sorted_out(observations)
    over = [place for place in over if place in is_open] + orphaned_incidents()
    if found or over:
        rows.in_transaction(partial(_write, found, over))


def _sorted_out(observations: Collection[Observation]) -> tuple[list[Event], list[Place]]:
    """Return the events for which to open incidents, and the incidents to end, as pairs of kind and subject."""
    found: list[Event] = []
    over: list[Place] = []
    for observation in observations:
        match observation:
            case Holds(event):
                found.append(event)
            case HoldsNot(kind, subject):
                over.append((kind, subject))
            case NotKnown():
                pass
            case _ as never:
                assert_never(never)
    return found, over


def _write(found: Collection[Event], over: Open) -> None:
    announce(found)
    conclude(over)


def _parked(conf: Conf, is_open: Open) -> Iterator[Observation]:
    most, oldest = conf.thresholds.parked_count, conf.thresholds.parked_age.total_seconds()
    found: list[Event] = []
    for lot in parked_messages():
        subject = of_dlq(lot.dlq_id)
        if holds(lot.messages, most, is_open=(EventKind.PARKED_MANY, subject) in is_open):
            found.append(_of_lot(EventKind.PARKED_MANY, lot, threshold=most))
        if holds(lot.seconds, oldest, is_open=(EventKind.PARKED_OLD, subject) in is_open):
            found.append(_of_lot(EventKind.PARKED_OLD, lot, seconds=_in_steps(lot.seconds), threshold=round(oldest)))
    yield from _all_of((EventKind.PARKED_MANY, EventKind.PARKED_OLD), found, is_open)


def _all_of(kinds: Collection[EventKind], found: Collection[Event], is_open: Open) -> Iterator[Observation]:
    """Yield `Holds` for each found event, and `HoldsNot` for the other open incidents of these kinds."""
    yield from map(Holds, found)
    there = {(event.kind, event.subject) for event in found}
    yield from (HoldsNot(*place) for place in is_open if place[0] in kinds and place not in there)


def _of_lot(kind: EventKind, lot: ParkedMessages, **more: int) -> Event:
    return Event(kind, of_dlq(lot.dlq_id), {"dlq": lot.name, "messages": lot.messages, **more}, dlq_id=lot.dlq_id)


def _uncaptured(watches: Collection[DlqStatus], conf: Conf) -> dict[int, int]:
    """Return how many messages of each DLQ are not captured, by the DLQ's id.

    For a DLQ that is captured automatically, the number is 0, unless captures fail. DLQs whose number is not known are
    left out: an automatic capture that failed may have made the messages invisible; or a capture runs on request.
    """
    ours = dlq_status.visible_copies(visibility=conf.receive_visibility, count_lag=conf.count_lag.total_seconds())
    known = (watch for watch in watches if not _is_unknown(watch))
    return {watch.id: _uncaptured_count(watch, ours.get(watch.id, 0)) for watch in known}


def _is_unknown(watch: DlqStatus) -> bool:
    if dlq_status.is_automatic(watch):
        return _captures_fail(watch) and not watch.depth_visible
    return watch.captured_until is not None


def _uncaptured_count(watch: DlqStatus, ours: int) -> int:
    if dlq_status.is_automatic(watch):
        return watch.depth_visible or 0 if _captures_fail(watch) else 0
    return dlq_status.uncaptured(watch, ours)


def _captures_fail(watch: DlqStatus) -> bool:
    return bool(watch.last_error) and plan_obstacles.UNDECRYPTABLE not in watch.last_error


def _expiring(conf: Conf, watches: Collection[DlqStatus], uncaptured: dict[int, int]) -> Iterator[Observation]:
    waited = dlq_samples.uncaptured_seconds(uncaptured)
    within = conf.thresholds.expires_within.total_seconds()
    for watch in watches:
        place = (EventKind.MESSAGES_EXPIRING, of_dlq(watch.id))
        since = waited.get(watch.id)
        left = None if since is None else seconds_left(waited=since, retention=watch.retention, within=within)
        if watch.id not in uncaptured:
            yield NotKnown(*place)
        elif left is None:
            yield HoldsNot(*place)
        else:
            facts: dict[str, str | int | float] = {
                "dlq": watch.name,
                "messages": uncaptured[watch.id],
                "seconds": _in_steps(left),
            }
            yield Holds(Event(*place, facts, dlq_id=watch.id))


def _growing(
    conf: Conf, watches: Collection[DlqStatus], uncaptured: dict[int, int], is_open: Open
) -> Iterator[Observation]:  # fmt: skip
    within = conf.thresholds.growing_for.total_seconds()
    if metrics.claim_if_due("dlq notes", every=within / NOTES):
        dlq_samples.record_samples(uncaptured, within=within)
    notes = dlq_samples.recent_samples(within=within)
    for watch in watches:
        place = (EventKind.DLQ_GROWING, of_dlq(watch.id))
        match growth(notes.get(watch.id, []), within=within, is_open=place in is_open):
            case Growth() as found:
                facts: dict[str, str | int | float] = {
                    "dlq": watch.name, "arrived": found.arrived, "drained": found.drained,
                    "seconds": _in_steps(found.seconds), "messages": found.backlog,
                }  # fmt: skip
                yield Holds(Event(*place, facts, dlq_id=watch.id))
            case NotGrowing():
                yield HoldsNot(*place)
            case GrowthUnknown():
                yield NotKnown(*place)
            case _ as never:
                assert_never(never)


def _stalled(conf: Conf, back_for: float, is_open: Open) -> Iterator[Observation]:
    """Yield an observation of each stalled run (outcomes are missing, or it sends nothing) and each open incident.

    After workers were silent, it is not known for a while which runs are stalled.
    """
    long = conf.thresholds.stalled_for.total_seconds()
    if back_for < min(long, _BACK_FOR):
        yield from (NotKnown(*place) for place in is_open if place[0] is EventKind.RUN_STALLED)
        return
    awaiting = stalled_runs.runs_without_outcomes(list(_overdue(conf)), long=long)
    waiting = [*stalled_runs.runs_that_are_blocked(long=long), *stalled_runs.runs_that_send_nothing(long=long)]
    runs = {run.run_id: run for run in [*waiting, *awaiting]}
    yield from _all_of((EventKind.RUN_STALLED,), [_of_run(run) for run in runs.values()], is_open)


def _overdue(conf: Conf) -> Iterator[OverdueOutcomes]:
    for target in pending_outcomes.of_targets(count_lag=conf.count_lag.total_seconds()):
        cause, since = Standstill.NOT_PROVED, pending_outcomes.unproved_since(target)
        if pending_outcomes.is_never_empty(target):
            cause, since = Standstill.NOT_CONSUMED, target.again_from or target.taken_at
        if since is not None:
            seconds = (target.now - since).total_seconds()
            yield OverdueOutcomes(target.dlq_id, target.target_id, target.unsettled, cause.value, seconds)


def _of_run(run: StalledRun) -> Event:
    why = standstill.standstill_sentence(Standstill(run.cause), resource_name(run.target))
    facts: dict[str, str | int | float] = {
        "run": run.name, "run_id": run.run_id, "dlq": run.dlq, "why": why, "messages": run.messages,
        "seconds": _in_steps(run.seconds),
    }  # fmt: skip
    return Event(EventKind.RUN_STALLED, of_run(run.run_id), facts, dlq_id=run.dlq_id)


def _in_steps(seconds: float) -> int:
    return int(seconds) // _STEP * _STEP if seconds >= _STEP else int(seconds) // 60 * 60
