"""What CloudWatch is told: values of metrics, and alarms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from reprocessing.domain.errors import CloudWatchIsOutOfReach
from reprocessing.gateways.aws.clients import cloudwatch
from reprocessing.gateways.aws.errors import out_of_reach
from reprocessing.gateways.aws.not_aws import refuse_strangers
from reprocessing.gateways.aws.queue_address import QueueAddress

#: Values of one PutMetricData, well below its 1,000 and its 1 MB. AWS: CloudWatch service quotas.
_MOST_VALUES: Final = 500
_MOST_ALARMS: Final = 100  #: of one DescribeAlarms


@dataclass(frozen=True, slots=True)
class Value:
    """One value of a metric."""

    name: str
    dimensions: tuple[tuple[str, str], ...]
    unit: str
    value: float


def tell(region: str, namespace: str, values: Sequence[Value], *, now: datetime) -> int:
    """Tell CloudWatch values of this moment; how many it has taken, in their order, before a call failed.

    Raises:
        CloudWatchIsOutOfReach: it has taken none.
    """
    for first in range(0, len(values), _MOST_VALUES):
        some = values[first : first + _MOST_VALUES]
        try:
            cloudwatch(region).put_metric_data(Namespace=namespace, MetricData=[_datum(one, now) for one in some])
        except (BotoCoreError, ClientError) as error:
            if first:
                return first
            raise _out_of_reach(namespace, "PutMetricData", error) from error
    return len(values)


def alarms(region: str, names: Sequence[str], *, of: Sequence[QueueAddress] = ()) -> dict[str, Mapping[str, Any]]:
    """The metric alarms of these names that are there, as CloudWatch describes them.

    Raises:
        CloudWatchIsOutOfReach: it refused, did not answer, or has nothing `of` these queues.
    """
    refuse_strangers(cloudwatch(region), of)
    found: dict[str, Mapping[str, Any]] = {}
    for first in range(0, len(names), _MOST_ALARMS):
        some = list(names[first : first + _MOST_ALARMS])
        try:
            answer = cloudwatch(region).describe_alarms(
                AlarmNames=some, AlarmTypes=["MetricAlarm"], MaxRecords=_MOST_ALARMS
            )
        except (BotoCoreError, ClientError) as error:
            raise _out_of_reach(region, "DescribeAlarms", error) from error
        found |= {one["AlarmName"]: one for one in answer["MetricAlarms"]}
    return found


def put_alarm(region: str, request: Mapping[str, Any]) -> None:
    """Make an alarm, or change it: all of it is replaced.

    Raises:
        CloudWatchIsOutOfReach: it refused, or did not answer.
    """
    try:
        cloudwatch(region).put_metric_alarm(**request)
    except (BotoCoreError, ClientError) as error:
        raise _out_of_reach(str(request["AlarmName"]), "PutMetricAlarm", error) from error


def _datum(one: Value, now: datetime) -> dict[str, Any]:
    return {
        "MetricName": one.name,
        "Dimensions": [{"Name": name, "Value": value} for name, value in one.dimensions],
        "Timestamp": now,
        "Unit": one.unit,
        "Value": one.value,
    }


def _out_of_reach(what: str, action: str, error: BotoCoreError | ClientError) -> CloudWatchIsOutOfReach:
    return CloudWatchIsOutOfReach(str(out_of_reach(what, action, error, "cloudwatch")))
