"""Put metric values and alarms into CloudWatch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from reprocessing.domain.errors import CloudWatchUnreachable
from reprocessing.gateways.aws.clients import cloudwatch
from reprocessing.gateways.aws.errors import reaching_cloudwatch
from reprocessing.gateways.aws.not_aws import refuse_queues_outside_aws
from reprocessing.gateways.aws.queue_address import QueueAddress

#: Values of one PutMetricData, well below its 1,000 and its 1 MB. AWS: CloudWatch service quotas.
_MOST_VALUES: Final = 500
_MOST_ALARMS: Final = 100  #: of one DescribeAlarms


@dataclass(frozen=True, slots=True)
class MetricValue:
    """One value of a metric."""

    name: str
    dimensions: tuple[tuple[str, str], ...]
    unit: str
    value: float


def put_metrics(region: str, namespace: str, values: Sequence[MetricValue], *, now: datetime) -> int:
    """Put values of this moment; return how many were accepted, in their order, before a call failed.

    Raises:
        CloudWatchIsOutOfReach: it has taken none.
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
    """The metric alarms of these names that are there, as CloudWatch describes them.

    Raises:
        CloudWatchIsOutOfReach: it refused, did not answer, or has nothing `of` these queues.
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
    """Make an alarm, or change it: all of it is replaced.

    Raises:
        CloudWatchIsOutOfReach: it refused, or did not answer.
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
