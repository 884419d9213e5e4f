"""Count what a turn took, at its end and in one statement: for the metrics, which nothing else leans on."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from django.db import Error as DatabaseError

from reprocessing.domain.aws.metric_names import ATTEMPTS, THROTTLES, Metric, spent
from reprocessing.gateways.aws import throttled
from reprocessing.store.aws import metrics
from reprocessing.store.aws.metrics import Key

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Turn:
    """What there is to count of one turn.

    Attributes:
        idle: it found nothing to do, and is not counted unless it failed.
        failed: it ended with an error.
        attempts: letters that were sent, or tried to, by target.
    """

    idle: bool = False
    failed: bool = False
    attempts: Counter[int] = field(default_factory=Counter)


@contextmanager
def turn(lasting: Metric, failing: Metric, place: int = 0) -> Iterator[Turn]:
    """The turn that the block is: its seconds to the one metric, its end by an exception to the other.

    A turn whose process is killed is not counted. What Postgres does not take is lost, and said in the log.
    """
    one, began = Turn(), time.monotonic()
    try:
        yield one
    except Exception:
        one.failed = True
        raise
    finally:
        if one.failed or not one.idle:
            _add(_sums(one, lasting, failing, place, time.monotonic() - began))


def _sums(one: Turn, lasting: Metric, failing: Metric, place: int, seconds: float) -> dict[Key, float]:
    sums: dict[Key, float] = {(lasting.name, place, part): n for part, n in spent(seconds).items()}
    sums |= {(ATTEMPTS.name, target, ""): n for target, n in one.attempts.items()}
    sums |= {(THROTTLES.name, 0, service): n for service, n in throttled().items()}
    return sums | ({(failing.name, place, ""): 1.0} if one.failed else {})


def _add(sums: dict[Key, float]) -> None:
    try:
        metrics.add(sums)
    except DatabaseError as error:
        logger.warning("What a turn took is missing in the metrics: %s", error)
