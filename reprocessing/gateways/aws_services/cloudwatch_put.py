"""Write metric values and alarms to CloudWatch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from reprocessing.domain.errors import CloudWatchUnreachable
from reprocessing.gateways.aws.clients import cloudwatch
from reprocessing.gateways.aws.errors import reaching_cloudwatch
from reprocessing.gateways.aws.non_aws_queues import refuse_queues_outside_aws
from reprocessing.gateways.aws.queue_address import QueueAddress

#: Max values in one PutMetricData request. AWS allows 1,000 values and 1 MB (AWS: CloudWatch service quotas).
_MOST_VALUES: Final = 500
_MOST_ALARMS: Final = 100  #: most alarms in one request (DescribeAlarms)


@dataclass(frozen=True, slots=True)
class MetricValue:
    """One value of a CloudWatch metric. `dimensions`: pairs (name, value)."""

    name: str
    dimensions: tuple[tuple[str, str], ...]
    unit: str
    value: float


def put_metrics(region: str, namespace: str, values: Sequence[MetricValue], *, now: datetime) -> int:
    """Write values to CloudWatch with the time `now`, 500 in a request. Return how many values were written.

    If a request fails, no further request is sent.

    Raises:
        CloudWatchUnreachable: the first request failed, so no value was written.
    """
    for first in range(0, len(values), _MOST_VALUES):
        some = values[first : first + _MOST_VALUES]
        try:
            with reaching_cloudwatch(namespace, "PutMetricData"):
                cloudwatch(region).put_metric_data(
                    Namespace=namespace, MetricData=[_datum(value, now) for value in some]
                )
        except CloudWatchUnreachable:
            if first:
                return first
            raise
    return len(values)


def alarms(region: str, names: Sequence[str], *, of: Sequence[QueueAddress] = ()) -> dict[str, Mapping[str, Any]]:
    """Return the existing metric alarms with these names, by name, as CloudWatch's DescribeAlarms returns them.

    `of`: the queues that the alarms are about.

    Raises:
        CloudWatchUnreachable: CloudWatch refused or did not answer, or a queue in `of` is not in AWS.
    """
    refuse_queues_outside_aws(cloudwatch(region), of)
    found: dict[str, Mapping[str, Any]] = {}
    for first in range(0, len(names), _MOST_ALARMS):
        some = list(names[first : first + _MOST_ALARMS])
        with reaching_cloudwatch(region, "DescribeAlarms"):
            answer = cloudwatch(region).describe_alarms(
                AlarmNames=some, AlarmTypes=["MetricAlarm"], MaxRecords=_MOST_ALARMS
            )
        found |= {alarm["AlarmName"]: alarm for alarm in answer["MetricAlarms"]}
    return found


def put_alarm(region: str, request: Mapping[str, Any]) -> None:
    """Create an alarm, or replace the alarm of the same name. `request`: the parameters of PutMetricAlarm.

    Raises:
        CloudWatchUnreachable: CloudWatch refused, or did not answer.
    """
    with reaching_cloudwatch(str(request["AlarmName"]), "PutMetricAlarm"):
        cloudwatch(region).put_metric_alarm(**request)


def _datum(metric: MetricValue, now: datetime) -> dict[str, Any]:
    return {
        "MetricName": metric.name,
        "Dimensions": [{"Name": name, "Value": value} for name, value in metric.dimensions],
        "Timestamp": now,
        "Unit": metric.unit,
        "Value": metric.value,
    }
