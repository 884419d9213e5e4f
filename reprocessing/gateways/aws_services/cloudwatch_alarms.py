"""Ask CloudWatch about the health of targets: states of alarms, and the age of a queue's oldest message.

No function of this module raises an error. If CloudWatch refuses or does not answer, the result is HealthUnknown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from reprocessing.domain.safety.health_check import HealthResult, HealthUnknown, Healthy, Unhealthy
from reprocessing.gateways.aws.clients import cloudwatch
from reprocessing.gateways.aws.errors import code_of, error_in_words, renew_credentials

Said = TypeVar("Said")

_MOST_ALARMS: Final = 100  #: most alarms in one request (DescribeAlarms)
_MOST_METRICS: Final = 500  #: most metrics in one request (GetMetricData)
_PERIOD: Final = 60  #: seconds between two values of an SQS metric in CloudWatch
_RECENT: Final = timedelta(minutes=10)  #: greatest age of a value that is used; CloudWatch gets values minutes late
_LONGEST_REASON: Final = 300

#: The result for a queue without an age in CloudWatch: it was not used for six hours, or does not exist.
NOBODY_USES_IT = HealthUnknown("CloudWatch has had no age of its oldest message for ten minutes: nobody uses the queue")


def alarm_states(region: str, names: Sequence[str]) -> dict[str, HealthResult]:
    """Return what metric alarms and composite alarms say about the health of a target, by alarm name.

    Healthy: the alarm is in state OK. Unhealthy: it is in state ALARM. HealthUnknown: it has no data, does not
    exist, or CloudWatch did not answer.
    """

    def ask(some: Sequence[str]) -> dict[str, HealthResult]:
        answer = cloudwatch(region).describe_alarms(
            AlarmNames=list(some), AlarmTypes=["MetricAlarm", "CompositeAlarm"], MaxRecords=_MOST_ALARMS
        )
        return {alarm["AlarmName"]: _state(alarm) for alarm in [*answer["MetricAlarms"], *answer["CompositeAlarms"]]}

    missing = HealthUnknown(f"CloudWatch has no alarm of this name in {region}")
    return _in_batches(names, _MOST_ALARMS, ask, "DescribeAlarms", missing)


def oldest_message_ages(region: str, queues: Sequence[str], *, now: datetime) -> dict[str, float | HealthUnknown]:
    """Return the age in seconds of each queue's oldest message (ApproximateAgeOfOldestMessage), by queue name.

    The age is the newest value of the ten minutes before `now`; HealthUnknown if CloudWatch has no such value.
    """

    def ask(some: Sequence[str]) -> dict[str, float | HealthUnknown]:
        answer = cloudwatch(region).get_metric_data(
            MetricDataQueries=[_metric(number, name) for number, name in enumerate(some)],
            StartTime=now - _RECENT, EndTime=now, ScanBy="TimestampDescending",
        )  # fmt: skip
        known = (result for result in answer["MetricDataResults"] if result["Values"])
        return {some[int(result["Id"][1:])]: result["Values"][0] for result in known}

    return _in_batches(queues, _MOST_METRICS, ask, "GetMetricData", NOBODY_USES_IT)


def _in_batches(
    names: Sequence[str],
    most: int,
    ask: Callable[[Sequence[str]], dict[str, Said]],
    action: str,
    missing: HealthUnknown,
) -> dict[str, Said | HealthUnknown]:
    found: dict[str, Said | HealthUnknown] = {}
    distinct = list(dict.fromkeys(names))
    for first in range(0, len(distinct), most):
        some = distinct[first : first + most]
        found.update(dict.fromkeys(some, missing))
        try:
            found.update(ask(some))
        except (BotoCoreError, ClientError) as error:
            found.update(dict.fromkeys(some, _failure(action, error)))
    return found


def _state(alarm: Mapping[str, Any]) -> HealthResult:
    state, reason = alarm["StateValue"], str(alarm.get("StateReason", ""))[:_LONGEST_REASON]
    match state:
        case "OK":
            return Healthy("in OK")
        case "ALARM":
            return Unhealthy(f"in ALARM: {reason}")
        case _:
            return HealthUnknown(f"in {state}: {reason}")


def _metric(number: int, queue: str) -> dict[str, Any]:
    dimensions = [{"Name": "QueueName", "Value": queue}]
    metric = {"Namespace": "AWS/SQS", "MetricName": "ApproximateAgeOfOldestMessage", "Dimensions": dimensions}
    return {"Id": f"q{number}", "MetricStat": {"Metric": metric, "Period": _PERIOD, "Stat": "Maximum"}}


def _failure(action: str, error: BotoCoreError | ClientError) -> HealthUnknown:
    cure = "Check the endpoint, the network and the credentials of this process"
    renew_credentials(error)
    if isinstance(error, ClientError) and "AccessDenied" in code_of(error):
        cure = f"Allow cloudwatch:{action} to the role of this process"
    return HealthUnknown(f"{action} failed: {error_in_words(error)}. {cure}")
