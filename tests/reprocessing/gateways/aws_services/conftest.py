"""AWS's other services, by moto's server."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import boto3
import pytest

from reprocessing.gateways.aws import forget_clients
from tests.contract.endpoints import moto_endpoint
from tests.reprocessing.gateways.aws_stand_in import Aws, amazon


@pytest.fixture(scope="module")
def aws() -> Iterator[Aws]:
    with amazon() as running:
        yield running


@pytest.fixture(scope="module")
def cloudwatch() -> Iterator[Any]:
    """A client of the CloudWatch in eu-west-1 that the package speaks to."""
    with moto_endpoint() as moto, pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL_CLOUDWATCH", moto.url)
        forget_clients()
        yield boto3.client("cloudwatch", region_name="eu-west-1")
    forget_clients()


def put_values(cloudwatch: Any, queue: str, metric: str, values: dict[datetime, float]) -> None:  # noqa: ANN401
    cloudwatch.put_metric_data(
        Namespace="AWS/SQS",
        MetricData=[
            {
                "MetricName": metric,
                "Dimensions": [{"Name": "QueueName", "Value": queue}],
                "Timestamp": at,
                "Value": value,
            }
            for at, value in values.items()
        ],
    )
