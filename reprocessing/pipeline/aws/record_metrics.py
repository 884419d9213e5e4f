"""Measure one replay or capture, and add its duration, errors and attempts to the stored metrics at its end."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from django.db import Error as DatabaseError

from reprocessing.domain.aws.metric_names import ATTEMPTS, THROTTLES, Metric, histogram_parts
from reprocessing.gateways.aws import take_throttle_counts
from reprocessing.store.aws import metrics
from reprocessing.store.aws.metrics import MetricKey

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class WorkCounts:
    """What is counted of one replay or capture.

    `idle`: there was nothing to do, so it is added to the metrics only if it `failed`. `attempts`: how many, by target
    id.
    """

    idle: bool = False
    failed: bool = False
    attempts: Counter[int] = field(default_factory=Counter)


@contextmanager
def measured_work(lasting: Metric, failing: Metric, place: int = 0) -> Iterator[WorkCounts]:
    """Measure the block: add its duration (s) to the metric `lasting`; if it fails, add 1 to the metric `failing`.

    `place`: the id of the DLQ; 0: none. The block is not counted if its process is killed, or if PostgreSQL cannot
    store the counts, which is logged.
    """
    counted, began = WorkCounts(), time.monotonic()
    try:
        yield counted
    except Exception:
        counted.failed = True
        raise
    finally:
        if counted.failed or not counted.idle:
            sums: dict[MetricKey, float] = {
                (lasting.name, place, part): n for part, n in histogram_parts(time.monotonic() - began).items()
            }
            sums |= {(ATTEMPTS.name, target, ""): n for target, n in counted.attempts.items()}
            sums |= {(THROTTLES.name, 0, service): n for service, n in take_throttle_counts().items()}
            sums |= {(failing.name, place, ""): 1.0} if counted.failed else {}
            try:
                metrics.add_to_sums(sums)
            except DatabaseError as error:
                logger.warning("A replay or capture is missing in the metrics: %s", error)
