"""Publish the metrics to CloudWatch: counters by what they grew since the last time, the others as they are."""

from __future__ import annotations

import logging
import math
from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Final

from reprocessing.domain.aws.cloudwatch_alarm import dimension
from reprocessing.domain.aws.metric_names import METRICS, Kind, Sample
from reprocessing.domain.errors import CloudWatchIsOutOfReach
from reprocessing.gateways.aws_services.cloudwatch_put import Value, tell
from reprocessing.pipeline.aws import collect_metrics
from reprocessing.store.aws import metrics
from reprocessing.store.aws.metrics import Sum
from reprocessing.store.maintenance import counters

logger = logging.getLogger(__name__)

#: Seconds from one time to the next: CloudWatch keeps a value a minute for each metric, unless it is paid for more.
EVERY: Final = 60.0
#: Where nobody tried to tell for longer, what was counted meanwhile never is told: CloudWatch would take it for one
#: minute's. What it refused, however long, is told once it takes it: whoever waits for an alarm waits for that.
AT_MOST_LATE: Final = timedelta(minutes=15)
_COUNTED: Final = sorted(
    {metrics.CAME_TO, *(one.name for one in METRICS if one.kind is Kind.COUNTER and one.cloudwatch)}
)


def everything(region: str, namespace: str, *, now: datetime, count_lag: float) -> int:
    """Tell CloudWatch every metric that it has a name for; how many values it took.

    What a counter grew by counts as told before it is, and as not told when CloudWatch did not take it: a process that
    dies in between leaves a gap in CloudWatch, never a double. Where it was told nothing for longer than `AT_MOST_LATE`
    since nobody tried to, or never anything, what counters grew by until now is not told at all.
    """
    goes_on = metrics.asked_since(now - AT_MOST_LATE)
    counters.fold()  # what letters came to is owed when it is summed up
    samples = collect_metrics.samples(count_lag=count_lag)
    owed = metrics.owed(_COUNTED)
    names = collect_metrics.names()
    known = [(one, sample) for one in owed if (sample := collect_metrics.sample_of(one, *names)) is not None]
    grown = known if goes_on else []
    values = [_value(sample) for _, sample in grown] + [_value(one) for one in samples if _is_told(one)]
    try:
        taken = tell(region, namespace, values, now=now)
    except CloudWatchIsOutOfReach as error:
        logger.warning("The metrics of this minute are told with the next one's: %s", error)
        taken = 0
    _take_back([one for one, _ in grown[taken:]])
    _note(now, left_out=len(known) - len(grown))
    return taken


def _note(now: datetime, *, left_out: int) -> None:
    metrics.note_asked(now)
    if left_out:
        logger.warning(
            "CloudWatch was told nothing for %.0f minutes, or never anything. What %d counters had grown by is left "
            "out: it would seem to be of one minute. They are told from now on.",
            AT_MOST_LATE.total_seconds() / 60,
            left_out,
        )


def _take_back(some: Collection[Sum]) -> None:
    if some:
        metrics.take_back(list(some))


def _is_told(one: Sample) -> bool:
    """CloudWatch has no infinite values."""
    return one.metric.kind is Kind.GAUGE and bool(one.metric.cloudwatch) and math.isfinite(one.value)


def _value(one: Sample) -> Value:
    """One without a rate class has no dimension of that name: CloudWatch takes no empty ones."""
    named = zip(one.metric.labels, one.labels, strict=True)
    dimensions = tuple((dimension(label), text) for label, text in named if text)
    return Value(one.metric.cloudwatch, dimensions, one.metric.unit, one.value)
