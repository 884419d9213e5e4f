"""Read SQS metrics of queues from CloudWatch: one hour, in periods of five minutes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from reprocessing.domain.aws.consumer_health import QueueMetrics
from reprocessing.gateways.aws.clients import AwsClient, cloudwatch
from reprocessing.gateways.aws.errors import reaching_cloudwatch
from reprocessing.gateways.aws.non_aws_queues import refuse_queues_outside_aws
from reprocessing.gateways.aws.queue_address import QueueAddress

_PERIOD: Final = 300  #: seconds that one value covers
_SPAN: Final = timedelta(hours=1)  #: the time for which values are read
_LATE: Final = timedelta(minutes=5)  #: newer values may be incomplete, and are not read
_MOST: Final = 500  #: most metrics in one request (AWS: GetMetricData)
#: For each field of `QueueMetrics`, the name of the SQS metric and the statistic for each period (AWS: Available
#: CloudWatch metrics for SQS).
_METRICS: Final[Mapping[str, tuple[str, str]]] = {
    "age": ("ApproximateAgeOfOldestMessage", "Maximum"),
    "in_flight": ("ApproximateNumberOfMessagesNotVisible", "Maximum"),
    "sent": ("NumberOfMessagesSent", "Sum"),
    "received": ("NumberOfMessagesReceived", "Sum"),
    "deleted": ("NumberOfMessagesDeleted", "Sum"),
}


def series(region: str, queues: Sequence[QueueAddress], *, role: str, now: datetime) -> dict[str, QueueMetrics]:
    """Return the metrics of each queue by queue URL, for the hour that ended five minutes before `now`.

    All queues are in one account, for which `role` is assumed. If empty, the process's own role is used.

    Raises:
        CloudWatchUnreachable: CloudWatch refused or did not answer, or the queues are not in AWS.
    """
    found: dict[str, QueueMetrics] = {}
    each = _MOST // len(_METRICS)
    for first in range(0, len(queues), each):
        some = queues[first : first + each]
        with reaching_cloudwatch(region, "GetMetricData"):
            client = cloudwatch(region, role)
            refuse_queues_outside_aws(client, some)
            values = _values(client, some, now, tuple(_METRICS))
        for place, queue in enumerate(some):
            found[queue.url] = QueueMetrics(**{name: values.get(f"q{place}_{name}", ()) for name in _METRICS})
    return found


def oldest_ages(region: str, queues: Sequence[QueueAddress], *, role: str, now: datetime) -> dict[str, float]:
    """Return the newest known age of each queue's oldest message in seconds, by queue URL.

    A queue that was not used lately has no metrics in CloudWatch, and is not in the result. All queues are in one
    account, for which `role` is assumed. If empty, the process's own role is used.

    Raises:
        CloudWatchUnreachable: CloudWatch refused or did not answer, or the queues are not in AWS.
    """
    found: dict[str, float] = {}
    for first in range(0, len(queues), _MOST):
        some = queues[first : first + _MOST]
        with reaching_cloudwatch(region, "GetMetricData"):
            client = cloudwatch(region, role)
            refuse_queues_outside_aws(client, some)
            values = _values(client, some, now, ("age",))
        ages = {queue.url: values.get(f"q{place}_age") for place, queue in enumerate(some)}
        found |= {url: of_queue[-1] for url, of_queue in ages.items() if of_queue}
    return found


def _values(
    client: AwsClient, queues: Sequence[QueueAddress], now: datetime, names: Sequence[str]
) -> dict[str, list[float]]:
    until = now - _LATE
    asked: dict[str, Any] = {
        "MetricDataQueries": [_query(place, queue, name) for place, queue in enumerate(queues) for name in names],
        "StartTime": until - _SPAN, "EndTime": until, "ScanBy": "TimestampAscending",
    }  # fmt: skip
    found: dict[str, list[float]] = {}
    while True:
        answer = client.get_metric_data(**asked)
        for result in answer["MetricDataResults"]:
            found.setdefault(result["Id"], []).extend(result["Values"])
        if not answer.get("NextToken"):
            return found
        asked["NextToken"] = answer["NextToken"]


def _query(place: int, queue: QueueAddress, name: str) -> dict[str, Any]:
    metric, stat = _METRICS[name]
    what = {"Namespace": "AWS/SQS", "MetricName": metric, "Dimensions": [{"Name": "QueueName", "Value": queue.name}]}
    return {"Id": f"q{place}_{name}", "MetricStat": {"Metric": what, "Period": _PERIOD, "Stat": stat}}
