"""Resolve the outcomes of sent letters: by consumer reports, by absence from the DLQ, or by a timeout.

A letter is presumed delivered on two conditions: after the send, its target was empty at two checks; and the letter did
not come back to the DLQ (docs/adr/0016, 0029).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from typing import Final, Protocol

from reprocessing.conf import Conf
from reprocessing.domain.errors import QueueUnreachable
from reprocessing.gateways.aws.request_threads import run_as_completed
from reprocessing.gateways.sqs import QueueAddress, depth
from reprocessing.pipeline.capture import delete_copies
from reprocessing.pipeline.outcomes import record_reports
from reprocessing.pipeline.replay import after_settlement
from reprocessing.pipeline.replay.lease_keeper import suspend_aware_clock
from reprocessing.store import rows
from reprocessing.store.aws import metrics
from reprocessing.store.maintenance import restore_hold
from reprocessing.store.ordering import lane_state, lanes
from reprocessing.store.outcomes import acknowledgements, evidence
from reprocessing.store.outcomes.evidence import OpenAttempt, TargetLook, WatchedTarget
from reprocessing.store.replay.settlement import Deletable, deliver_accepted, presume_delivered

logger = logging.getLogger(__name__)

_GROUP = 500  #: most attempts in one transaction
#: Most attempts that one search returns. Each search for evidence reads all open attempts of the targets.
_FOUND: Final = 20_000
#: Most targets that are checked at the same time, and seconds after which no further target is checked. The limit is
#: needed because no letter is presumed delivered while a check waits for an unreachable region.
_THREADS: Final = 32
_LOOKS_FOR: Final = 10.0
_LOOK_ENDS: Final = 30.0  # seconds after which another worker may check the targets, if the worker that began has died


class _Find(Protocol):
    """Returns up to `limit` attempts that can be closed now, sorted by lane."""

    def __call__(self, *, limit: int) -> list[OpenAttempt]: ...


#: Closes attempts with these ids; returns the copies that may be deleted.
_Close = Callable[[Sequence[int]], list[Deletable]]


def resolve_letters(*, conf: Conf, dice: Callable[[], float]) -> int:
    """Resolve the outcomes of sent letters of all DLQs; return how many letters became delivered or presumed delivered.

    (1) Apply reports that arrived before their attempts were recorded. (2) Check whether targets are empty. (3) If a
    target's outcome was changed to `accepted`, close letters that it accepted as delivered. (4) Presume letters
    delivered. (5) Park letters whose consumer did not report in time. (6) Free lanes whose parked letter can no longer
    come back.

    After a restore, only steps 1 and 2 are done until a person has decided, since PostgreSQL may not know which letters
    came back. `dice`: returns random numbers for backoffs, and for the order in which targets are checked.
    """
    record_reports.apply_late(dice=dice)
    _look_if_due(dice)
    if restore_hold.current_hold() is not None:
        return 0
    lag = conf.count_lag.total_seconds()
    promoted = _close_in_groups(evidence.accepted_attempts, deliver_accepted)
    promoted += _close_in_groups(partial(evidence.presumable_attempts, count_lag=lag), presume_delivered)
    while found := acknowledgements.overdue_attempts(limit=_GROUP):
        _close(found, acknowledgements.close_silent)
    while found := [
        *evidence.outlasted_attempts(count_lag=lag, limit=_GROUP),
        *acknowledgements.outlasted_unwatched_attempts(limit=_GROUP),
    ]:
        _close(found, acknowledgements.close_unknown)
    return promoted


def _look_if_due(dice: Callable[[], float]) -> None:
    """Check whether the targets are empty, unless another worker does this now."""
    if not metrics.claim_if_due("look", every=_LOOK_ENDS):
        return
    try:
        _look(sorted(evidence.watched_targets(), key=lambda _: dice()))
    finally:
        metrics.make_due("look")


def _look(some: Sequence[WatchedTarget]) -> None:
    """Ask SQS whether each target is empty. Record each answer when it arrives, with the time of the request.

    The threads that ask SQS have no connection to PostgreSQL. So PostgreSQL is asked for its time only at the
    beginning; the time that has passed since is added.
    """
    clock = suspend_aware_clock()
    before, began, since = clock(), lanes.database_now(), clock()

    def ask(target: WatchedTarget) -> tuple[list[TargetLook], float, float]:
        asked, looks = clock(), list[TargetLook]()
        try:
            found = depth(QueueAddress(url=target.url, region=target.region, role=target.role_arn))
            empty = found.visible == 0 and found.delayed == 0
            looks.append(TargetLook(target.target_id, empty=empty, quiet=empty and found.in_flight == 0))
        except QueueUnreachable as error:
            logger.warning("%s", error, extra={"target": target.url})
        except Exception:  # an error of one target; the other targets are recorded
            logger.exception("The number of messages in %s is not known.", target.url, extra={"target": target.url})
        return looks, asked - since, clock() - asked + since - before

    for looks, after, took in run_as_completed(ask, some, _THREADS, within=_LOOKS_FOR):
        evidence.record_looks(looks, at=began + timedelta(seconds=after), took=took)


def _close_in_groups(find: _Find, close: _Close) -> int:
    """Close the attempts that `find` returns, 500 in a transaction; return how many. Stop when a restore hold begins.

    What `find` has found stays true, unless a person changes the target meanwhile: later looks do not refute earlier
    ones, and a returned attempt is closed already. Another worker that found the same attempts may have closed them
    before: their lanes are not locked again.
    """
    done = 0
    while found := find(limit=_FOUND):
        for first in range(0, len(found), _GROUP):
            some = evidence.still_open(found[first : first + _GROUP])
            if some:
                _close(some, close)
            done += len(some)
            if restore_hold.current_hold() is not None:
                return done
        if len(found) < _FOUND:
            break
    return done


def _close(found: Sequence[OpenAttempt], close: _Close) -> None:
    """Close attempts by calling `close`, while their lanes are locked. Then delete the copies that `close` returns.

    Attempts that were closed meanwhile are not changed.
    """
    ids = sorted({attempt.lane_id for attempt in found})

    def record() -> list[Deletable]:
        lanes.lock(ids, [None] * len(ids))
        deletable = close([attempt.attempt_id for attempt in found])
        lane_state.advance(ids, [None] * len(ids))
        return deletable

    delete_copies.delete_from_dlqs(rows.in_transaction(record))
    after_settlement.update_after_attempts(found)
