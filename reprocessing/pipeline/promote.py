"""Presume letters delivered: sent well before their target was seen consumed, twice, and not come back since."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from reprocessing.conf import Conf
from reprocessing.domain.errors import QueueIsOutOfReach
from reprocessing.models import evidence, lanes, rows
from reprocessing.models.evidence import Ripe
from reprocessing.models.settlement import Deletable, presume
from reprocessing.pipeline import clear, tell
from reprocessing.sqs import QueueAddress, depth

logger = logging.getLogger(__name__)

_GROUP = 500


def letters(*, conf: Conf) -> int:
    """Look at the targets that letters wait for, and promote what the evidence allows; how many letters."""
    _look()
    promoted = 0
    lag = conf.count_lag.total_seconds()
    while found := evidence.ripe(count_lag=lag, limit=_GROUP):
        _promote(found)
        promoted += len(found)
        if len(found) < _GROUP:
            break
    return promoted


def _look() -> None:
    """Note which targets have nothing visible, nor delayed, now. The moment counts from before the question."""
    began = lanes.clock()
    empty: list[int] = []
    for target in evidence.watched():
        try:
            found = depth(QueueAddress(url=target.url, region=target.region))
            if found.visible == 0 and found.delayed == 0:
                empty.append(target.target_id)
        except QueueIsOutOfReach as error:
            logger.warning("%s", error)
    evidence.sight(empty, at=began)


def _promote(found: Sequence[Ripe]) -> None:
    """Against a return of the same letter, whoever locks its lane first decides."""
    ids = sorted({one.lane_id for one in found})

    def record() -> list[Deletable]:
        lanes.lock(ids, [None] * len(ids))
        deletable = presume([one.attempt_id for one in found])
        lanes.advance(ids, [None] * len(ids))
        return deletable

    clear.everywhere(rows.whole(record))
    tell.outcomes(of_breakers=[one.breaker_id for one in found], of_runs=[one.run_id for one in found])
