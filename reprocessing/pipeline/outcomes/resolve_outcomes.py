"""Find out what became of sent letters: what their consumers said, the evidence of absence, or nothing but silence.

Presumed delivered is what was sent well before its target was seen consumed, twice, and has not come back since; the
two looks are a window apart, or shorter where the target had nothing in it at all (docs/adr/0016, 0029).
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
#: Targets that are asked at the same time, and seconds after which no other one is: promotion waits for them, and of a
#: region out of reach each takes as long as SQS may to answer.
_THREADS: Final = 32
_LOOKS_FOR: Final = 10.0
#: Seconds after which the look of a worker that died is another's.
_LOOK_ENDS: Final = 30.0


def letters(*, conf: Conf, dice: Callable[[], float]) -> int:
    """Look at the targets that letters wait for, and promote what the evidence allows; how many letters.

    The dice say in which order they are looked at: where there is no time for all of them, none is always the last.
    While somebody else looks, what was seen by now is enough.
    Before that, reports are heard that came before their attempts were known, with `dice` for the backoff of what
    failed, too; after it, letters are parked whose consumers were to answer by now, and where nothing else can be
    seen; and lanes go on whose letter was parked after a last attempt of unknown end, once that can come back no more.
    While everything is held after a restore, that nothing came back is no evidence: it may have, and be forgotten.
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
    """One at a time, fleet-wide: every two seconds another is begun, and of a region out of reach each takes twenty."""
    if not metrics.is_due("look", every=_LOOK_ENDS):
        return
    try:
        _look(sorted(evidence.watched(), key=lambda _: dice()))
    finally:
        metrics.is_over("look")


def _look(some: Sequence[Watched]) -> None:
    """Note what targets hold, one call each, as soon as it answers, with the time of question and answer.

    Which moment that is, is reckoned from one answer of Postgres; the threads that ask have no connection to it.
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
        except Exception:  # one target's fault must leave the others their sightings
            logger.exception("What %s holds is not known.", target.url)
        return looks, asked - since, clock() - asked + since - before

    for looks, after, took in as_they_end(ask, some, _THREADS, within=_LOOKS_FOR):
        evidence.sight(looks, at=began + timedelta(seconds=after), took=took)


def _close(found: Sequence[Ripe], close: Callable[[Sequence[int]], list[Deletable]]) -> None:
    """Against a return of the same letter, or a word of its consumer, whoever locks its lane first decides."""
    ids = sorted({one.lane_id for one in found})

    def record() -> list[Deletable]:
        lanes.lock(ids, [None] * len(ids))
        deletable = close([one.attempt_id for one in found])
        lanes.advance(ids, [None] * len(ids))
        return deletable

    delete_copies.everywhere(rows.whole(record))
    after_settlement.outcomes(of_breakers=[one.breaker_id for one in found], of_runs=[one.run_id for one in found])
