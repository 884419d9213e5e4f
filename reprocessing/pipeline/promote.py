"""Find out what became of sent letters: what their consumers said, the evidence of absence, or nothing but silence.

Presumed delivered is what was sent well before its target was seen consumed, twice, and has not come back since.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from reprocessing.conf import Conf
from reprocessing.domain.errors import QueueIsOutOfReach
from reprocessing.models import acknowledgement, evidence, hold, lanes, rows
from reprocessing.models.evidence import Ripe
from reprocessing.models.settlement import Deletable, presume
from reprocessing.pipeline import clear, hear, tell
from reprocessing.sqs import QueueAddress, depth

logger = logging.getLogger(__name__)

_GROUP = 500


def letters(*, conf: Conf, dice: Callable[[], float]) -> int:
    """Look at the targets that letters wait for, and promote what the evidence allows; how many letters.

    Before that, reports are heard that came before their attempts were known, with `dice` for the backoff of what
    failed; after it, letters are parked whose consumers were to answer by now, and where nothing else can be seen; and
    lanes go on whose letter was parked after a last attempt of unknown end, once that can come back no more. While
    everything is held after a restore, that nothing came back is no evidence: it may have, and be forgotten.
    """
    hear.again(dice=dice)
    _look()
    if hold.standing() is not None:
        return 0
    promoted = 0
    lag = conf.count_lag.total_seconds()
    while found := evidence.ripe(count_lag=lag, limit=_GROUP):
        _close(found, presume)
        promoted += len(found)
        if len(found) < _GROUP or hold.standing() is not None:  # then nothing was promoted
            break
    while found := acknowledgement.overdue(limit=_GROUP):
        _close(found, acknowledgement.silence)
    while found := [*evidence.outlasted(count_lag=lag, limit=_GROUP), *acknowledgement.outlasted(limit=_GROUP)]:
        _close(found, acknowledgement.give_up)
    return promoted


def _look() -> None:
    """Note which targets have nothing visible, nor delayed, now. The moment counts from before the question."""
    began = lanes.clock()
    empty: list[int] = []
    for target in evidence.watched():
        try:
            found = depth(QueueAddress(url=target.url, region=target.region, role=target.role_arn))
            if found.visible == 0 and found.delayed == 0:
                empty.append(target.target_id)
        except QueueIsOutOfReach as error:
            logger.warning("%s", error)
    evidence.sight(empty, at=began)


def _close(found: Sequence[Ripe], close: Callable[[Sequence[int]], list[Deletable]]) -> None:
    """Against a return of the same letter, or a word of its consumer, whoever locks its lane first decides."""
    ids = sorted({one.lane_id for one in found})

    def record() -> list[Deletable]:
        lanes.lock(ids, [None] * len(ids))
        deletable = close([one.attempt_id for one in found])
        lanes.advance(ids, [None] * len(ids))
        return deletable

    clear.everywhere(rows.whole(record))
    tell.outcomes(of_breakers=[one.breaker_id for one in found], of_runs=[one.run_id for one in found])
