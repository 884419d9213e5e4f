"""What CloudWatch has of a queue within the hour, in order, and complete. Against moto's server."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from reprocessing.domain.aws.consumer_health import FailingConsumers, FallingBehind, QueueMetrics, judge_consumers
from reprocessing.domain.errors import CloudWatchUnreachable
from reprocessing.gateways import aws
from reprocessing.gateways.aws_services.cloudwatch_get import series
from reprocessing.gateways.sqs import QueueAddress
from tests.reprocessing.gateways.aws_services.conftest import put_values

REGION = "eu-west-1"
NOW = datetime(2026, 1, 1, 12, 5, tzinfo=UTC)
ORDERS = QueueAddress("http://127.0.0.1:9/000000000000/orders", REGION)


def put(cloudwatch: Any, queue: str, metric: str, *values: float) -> None:  # noqa: ANN401
    """One value every five minutes, the last of them at noon."""
    latest_first = enumerate(reversed(values))
    put_values(
        cloudwatch, queue, metric, {NOW - timedelta(minutes=10 + 5 * place): value for place, value in latest_first}
    )


def test_each_metric_of_each_queue_is_told_oldest_first(cloudwatch: Any) -> None:  # noqa: ANN401
    bills = QueueAddress("http://127.0.0.1:9/000000000000/bills", REGION)
    put(cloudwatch, "orders", "ApproximateAgeOfOldestMessage", 0, 300, 600, 900, 1200, 1500)
    for metric, value in (("NumberOfMessagesSent", 10), ("NumberOfMessagesReceived", 10)):
        put(cloudwatch, "bills", metric, *[value] * 6)
    put(cloudwatch, "bills", "NumberOfMessagesDeleted", *[3] * 6)
    nobody = QueueAddress("http://127.0.0.1:9/000000000000/nobody", REGION)
    found = series(REGION, [ORDERS, bills, nobody], role="", now=NOW)
    assert list(found) == [ORDERS.url, bills.url, nobody.url]
    assert found[nobody.url] == QueueMetrics([], [], [], [], [])
    assert list(found[ORDERS.url].age) == [0, 300, 600, 900, 1200, 1500]
    assert judge_consumers(found[ORDERS.url]) == (FallingBehind(150, 1350),)
    assert judge_consumers(found[bills.url]) == (FailingConsumers(60, 60, 18),)


def test_aws_is_not_asked_about_queues_that_are_not_its_own(afresh: pytest.MonkeyPatch) -> None:
    afresh.delenv("AWS_ENDPOINT_URL_CLOUDWATCH", raising=False)
    aws.forget_clients()
    with pytest.raises(CloudWatchUnreachable, match="not in AWS"):
        series(REGION, [ORDERS], role="", now=NOW)
