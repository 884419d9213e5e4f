"""Publish metrics to CloudWatch: for a counter, its growth since the last publication; for a gauge, its value."""

from __future__ import annotations

import logging
import math
from datetime import datetime, timedelta
from typing import Final

from reprocessing.domain.aws.cloudwatch_alarm import dimension_name
from reprocessing.domain.aws.metric_names import METRICS, Kind, Sample
from reprocessing.domain.errors import CloudWatchUnreachable
from reprocessing.gateways.aws_services.cloudwatch_put import MetricValue, put_metrics
from reprocessing.pipeline.aws import collect_metrics
from reprocessing.store.aws import metrics
from reprocessing.store.maintenance import counters

logger = logging.getLogger(__name__)

#: Seconds between two publications: CloudWatch keeps one value a minute at the standard resolution.
PUBLISH_EVERY: Final = 60.0
#: After a longer gap without publication, the growth of counters is dropped: CloudWatch would show the growth of the
#: whole gap in one minute. Growth that CloudWatch refused within this time is published later.
AT_MOST_LATE: Final = timedelta(minutes=15)
_COUNTED: Final = sorted(
    {metrics.LETTER_EVENTS, *(metric.name for metric in METRICS if metric.kind is Kind.COUNTER and metric.cloudwatch)}
)


def publish_all(region: str, namespace: str, *, now: datetime, count_lag: float) -> int:
    """Publish every metric that has a name in CloudWatch; return how many values CloudWatch accepted.

    Growth is marked as published before it is sent, and unmarked if CloudWatch refused it. If the process dies in
    between, this growth is missing in CloudWatch, but growth is never published twice. In the first call, and after a
    gap of 15 minutes, growth is dropped, because CloudWatch would show all of it in one minute.
    """
    goes_on = metrics.put_attempted_since(now - AT_MOST_LATE)
    counters.fold_deltas()
    samples = collect_metrics.samples(count_lag=count_lag)
    owed = metrics.take_unpublished(_COUNTED)
    names = collect_metrics.dlq_and_target_names()
    known = [(total, sample) for total in owed if (sample := collect_metrics.sample_of(total, *names)) is not None]
    grown = known if goes_on else []
    values = [_value(sample) for _, sample in grown] + [
        _value(gauge) for gauge in samples if _is_published_gauge(gauge)
    ]
    try:
        taken = put_metrics(region, namespace, values, now=now)
    except CloudWatchUnreachable as error:
        logger.warning("The metrics of this minute are published with the next minute's: %s", error)
        taken = 0
    if refused := [total for total, _ in grown[taken:]]:
        metrics.return_unpublished(refused)
    metrics.record_put_attempt(now)
    if left_out := len(known) - len(grown):
        logger.warning(
            "Nothing was published to CloudWatch for %.0f minutes, or never before. The growth of %d counters is "
            "dropped, because CloudWatch would show it in one minute. They are published from now on.",
            AT_MOST_LATE.total_seconds() / 60,
            left_out,
        )
    return taken


def _is_published_gauge(sample: Sample) -> bool:
    """Return whether a sample is of a gauge that has a name in CloudWatch, and has a finite value.

    CloudWatch does not accept infinite values.
    """
    return sample.metric.kind is Kind.GAUGE and bool(sample.metric.cloudwatch) and math.isfinite(sample.value)


def _value(sample: Sample) -> MetricValue:
    """Return a sample in CloudWatch's form. Empty labels are left out: CloudWatch refuses empty dimensions."""
    named = zip(sample.metric.labels, sample.labels, strict=True)
    dimensions = tuple((dimension_name(label), text) for label, text in named if text)
    return MetricValue(sample.metric.cloudwatch, dimensions, sample.metric.unit, sample.value)
