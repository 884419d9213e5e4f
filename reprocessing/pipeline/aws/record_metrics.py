"""Measure one replay or capture, and add its duration, errors and attempts to the stored metrics at its end."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime

from django.db import Error as DatabaseError

from reprocessing.domain.aws.metric_names import ATTEMPTS, THROTTLES, Metric, histogram_parts
from reprocessing.gateways.aws import take_throttle_counts
from reprocessing.store.aws import metrics
from reprocessing.store.aws.metrics import MetricKey
from reprocessing.store.runs import run_minutes

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class WorkCounts:
    """What is counted during one replay or capture.

    Attributes:
        idle: True: there was nothing to do. Then nothing is added to the metrics, unless the work failed.
        failed: whether the work failed.
        attempts: number of attempts, by target id.
        sent: number of attempts, by run id and the minute in which they were opened.
    """

    idle: bool = False
    failed: bool = False
    attempts: Counter[int] = field(default_factory=Counter)
    sent: Counter[tuple[int, datetime]] = field(default_factory=Counter)


@contextmanager
def measured_work(lasting: Metric, failing: Metric, place: int = 0) -> Iterator[WorkCounts]:
    """Measure the `with` block, and add its duration and failure to the stored metrics.

    The duration (s) is added to the metric `lasting`. If the block fails, 1 is added to the metric `failing`. `place`:
    the id of the DLQ; 0: none. If the process is killed, the block is not counted. If PostgreSQL cannot store the
    counts, a warning is logged.
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
                run_minutes.add(counted.sent)
            except DatabaseError as error:
                logger.warning("A replay or capture is missing in the metrics: %s", error)
