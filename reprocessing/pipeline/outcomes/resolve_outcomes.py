"""Resolve the outcomes of sent letters: by consumer reports, by evidence of absence, or by silence.

A letter is presumed delivered when its target was seen empty twice after the send, and the letter did not come back
since (docs/adr/0016, 0029).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Final

from reprocessing.conf import Conf
from reprocessing.domain.errors import QueueIsOutOfReach
from reprocessing.gateways.aws.request_threads import as_they_end
from reprocessing.gateways.sqs import QueueAddress, depth
from reprocessing.pipeline.capture import delete_copies
from reprocessing.pipeline.outcomes import record_reports
from reprocessing.pipeline.replay import after_settlement
from reprocessing.pipeline.replay.lease_keeper import unslept
from reprocessing.store import rows
from reprocessing.store.aws import metrics
from reprocessing.store.maintenance import restore_hold
from reprocessing.store.ordering import lanes
from reprocessing.store.outcomes import acknowledgements, evidence
from reprocessing.store.outcomes.evidence import Look, Ripe, Watched
from reprocessing.store.replay.settlement import Deletable, presume

logger = logging.getLogger(__name__)

_GROUP = 500
#: Targets that are asked at the same time, and seconds after which no further target is asked. A region that is out of
#: reach answers slowly, and promotion waits.
_THREADS: Final = 32
_LOOKS_FOR: Final = 10.0
_LOOK_ENDS: Final = 30.0  # seconds after which another worker may look, if the worker that looks has died


def letters(*, conf: Conf, dice: Callable[[], float]) -> int:
    """Resolve outcomes of all DLQs, and return how many letters were presumed delivered.

    In this order: apply early reports, look at targets, presume delivered, park letters whose consumer did not answer
    in time, and free lanes whose parked letter can no longer come back. The dice are for backoffs, and for the order of
    the looks, so that it is not always the same target for which no time is left. After a restore nothing is presumed:
    letters may have come back and be forgotten.
    """
    record_reports.again(dice=dice)
    _look_in_turn(dice)
    if restore_hold.standing() is not None:
        return 0
    promoted = 0
    lag = conf.count_lag.total_seconds()
    while found := evidence.ripe(count_lag=lag, limit=_GROUP):
        _close(found, presume)
        promoted += len(found)
        if len(found) < _GROUP or restore_hold.standing() is not None:  # then nothing was promoted
            break
    while found := acknowledgements.overdue(limit=_GROUP):
        _close(found, acknowledgements.silence)
    while found := [*evidence.outlasted(count_lag=lag, limit=_GROUP), *acknowledgements.outlasted(limit=_GROUP)]:
        _close(found, acknowledgements.give_up)
    return promoted


def _look_in_turn(dice: Callable[[], float]) -> None:
    """Look at the targets, unless another worker does."""
    if not metrics.is_due("look", every=_LOOK_ENDS):
        return
    try:
        _look(sorted(evidence.watched(), key=lambda _: dice()))
    finally:
        metrics.is_over("look")


def _look(some: Sequence[Watched]) -> None:
    """Note how many messages each target holds, with the time of the question, as soon as SQS answers.

    Times are computed from one answer of PostgreSQL, since the threads that ask SQS have no connection to it.
    """
    clock = unslept()
    before, began, since = clock(), lanes.clock(), clock()

    def ask(target: Watched) -> tuple[list[Look], float, float]:
        asked, looks = clock(), list[Look]()
        try:
            found = depth(QueueAddress(url=target.url, region=target.region, role=target.role_arn))
            empty = found.visible == 0 and found.delayed == 0
            looks.append(Look(target.target_id, empty=empty, quiet=empty and found.in_flight == 0))
        except QueueIsOutOfReach as error:
            logger.warning("%s", error)
        except Exception:  # of one target; the others are noted
            logger.exception("The number of messages in %s is not known.", target.url)
        return looks, asked - since, clock() - asked + since - before

    for looks, after, took in as_they_end(ask, some, _THREADS, within=_LOOKS_FOR):
        evidence.sight(looks, at=began + timedelta(seconds=after), took=took)


def _close(found: Sequence[Ripe], close: Callable[[Sequence[int]], list[Deletable]]) -> None:
    """Close attempts under their lanes' locks. A return or a report that locked the lane before has decided already."""
    ids = sorted({attempt.lane_id for attempt in found})

    def record() -> list[Deletable]:
        lanes.lock(ids, [None] * len(ids))
        deletable = close([attempt.attempt_id for attempt in found])
        lanes.advance(ids, [None] * len(ids))
        return deletable

    delete_copies.everywhere(rows.whole(record))
    after_settlement.attempts(found)
