"""CloudWatch gets gauges as they are, and what each counter grew by once. Against moto's server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest

from reprocessing.domain.errors import CloudWatchUnreachable
from reprocessing.gateways import aws
from reprocessing.gateways.aws_services import cloudwatch_put
from reprocessing.gateways.aws_services.cloudwatch_put import MetricValue
from reprocessing.pipeline.aws import publish_metrics
from tests.contract.endpoints import moto_endpoint
from tests.reprocessing.pipeline.bench import Workbench, enqueued

pytestmark = pytest.mark.django_db(transaction=True)

REGION, SPACE = "eu-west-1", "Redrive/Tests"
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def cloudwatch() -> Iterator[Any]:
    with moto_endpoint() as moto, pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL_CLOUDWATCH", moto.url)
        aws.forget_clients()
        yield boto3.client("cloudwatch", region_name=REGION)
    aws.forget_clients()


def told(cloudwatch: Any, name: str, stat: str = "Sum", **dimensions: str) -> list[float]:  # noqa: ANN401
    found = cloudwatch.get_metric_statistics(
        Namespace=SPACE, MetricName=name, Dimensions=[{"Name": n, "Value": v} for n, v in dimensions.items()],
        StartTime=NOW - timedelta(minutes=5), EndTime=NOW + timedelta(minutes=30), Period=60, Statistics=[stat],
    )["Datapoints"]  # fmt: skip
    return [one[stat] for one in sorted(found, key=lambda one: one["Timestamp"])]


def at(minute: int) -> int:
    return publish_metrics.publish_all(REGION, SPACE, now=NOW + timedelta(minutes=minute), count_lag=0)


def drained(*bodies: str) -> Workbench:
    bench = enqueued(*bodies, fields={"max_attempts": 1})
    with bench.refusing("bad"):
        bench.replay()
    return bench


@pytest.mark.soak
def test_counters_are_told_by_what_they_grew_and_others_as_they_are(cloudwatch: Any) -> None:  # noqa: ANN401
    at(-1)
    bench = drained("good", "better", "bad")
    assert at(0) > 0
    at(1)
    _one_more(bench, "late")
    at(2)
    assert told(cloudwatch, "RedriveSuccess", Dlq=bench.name) == [2, 1]
    assert told(cloudwatch, "RedriveFailure", Dlq=bench.name) == [1]
    assert told(cloudwatch, "MessageMovedToParkingLot", Dlq=bench.name) == [1]
    assert told(cloudwatch, "ParkedLetters", "Maximum", Dlq=bench.name) == [1, 1, 1]
    assert told(cloudwatch, "BreakerState", "Maximum", Target=bench.source_url.rsplit("/", 1)[-1]) == [0, 0, 0]
    assert told(cloudwatch, "EverythingStopped", "Maximum") == [0, 0, 0, 0]


class StandIn:
    """Stands in for CloudWatch, and keeps the values of the last request that it took."""

    def __init__(self) -> None:
        self.is_away = False
        self.values: list[MetricValue] = []

    def tell(self, _region: str, _namespace: str, values: Sequence[MetricValue], *, now: datetime) -> int:
        assert now.tzinfo
        if self.is_away:
            raise CloudWatchUnreachable("no")
        self.values = list(values)
        return len(values)

    def told(self, name: str) -> list[float]:
        return [value.value for value in self.values if value.name == name]


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> StandIn:
    made = StandIn()
    monkeypatch.setattr(publish_metrics, "put_metrics", made.tell)
    return made


def _one_more(bench: Workbench, body: str) -> None:
    bench.redrive(body)


@pytest.mark.soak
def test_counters_are_published_from_the_first_time_on(stand_in: StandIn, caplog: pytest.LogCaptureFixture) -> None:
    """Months of counts in one minute would trip the alarms."""
    bench = drained("good", "better")
    at(0)
    assert (stand_in.told("RedriveSuccess"), stand_in.told("UnfinishedLetters")) == ([], [0])
    (said,) = [record.getMessage() for record in caplog.records if record.name == publish_metrics.__name__]
    assert said == (
        "Nothing was published to CloudWatch for 15 minutes, or never before. The growth of 3 counters is dropped, "
        "because CloudWatch would show it in one minute. They are published from now on."
    )
    _one_more(bench, "late")
    at(1)
    assert stand_in.told("RedriveSuccess") == [1]


@pytest.mark.parametrize(("minutes", "told"), [(15, [1.0]), (16, [])])
def test_counts_are_published_late_by_fifteen_minutes_at_most(
    stand_in: StandIn, minutes: int, told: list[float]
) -> None:
    at(0)
    bench = drained("good")
    at(minutes)
    assert stand_in.told("RedriveSuccess") == told
    _one_more(bench, "late")
    at(minutes + 1)
    assert stand_in.told("RedriveSuccess") == [1]


def test_counts_that_cloudwatch_did_not_take_are_published_once_it_does_however_late(stand_in: StandIn) -> None:
    at(0)
    stand_in.is_away = True
    bench = drained("good")
    for minutes in range(10, 60, 10):
        at(minutes)
    _one_more(bench, "late")
    stand_in.is_away = False
    at(60)
    assert stand_in.told("RedriveSuccess") == [2.0]


@pytest.mark.soak
def test_values_are_sent_five_hundred_at_a_time_and_the_number_taken_is_returned(
    cloudwatch: Any,  # noqa: ANN401
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    values = [MetricValue("Many", (("Dlq", f"d{number}"),), "Count", 1.0) for number in range(1_200)]
    assert cloudwatch_put.put_metrics(REGION, SPACE, values, now=NOW) == 1_200
    assert told(cloudwatch, "Many", Dlq="d1199") == [1]
    datum = cloudwatch_put._datum
    monkeypatch.setattr(
        cloudwatch_put, "_datum", lambda value, now: {} if value.dimensions[0][1] == "d700" else datum(value, now)
    )
    assert cloudwatch_put.put_metrics(REGION, SPACE, values, now=NOW) == 500


@pytest.mark.soak
def test_a_cloudwatch_that_does_not_answer_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = drained("good")
    monkeypatch.setenv("AWS_ENDPOINT_URL_CLOUDWATCH", "http://127.0.0.1:1")
    aws.forget_clients()
    try:
        assert at(0) == 0
        with pytest.raises(CloudWatchUnreachable, match="Check the endpoint"):
            cloudwatch_put.put_metrics(REGION, SPACE, [MetricValue("One", (), "Count", 1.0)], now=NOW)
    finally:
        aws.forget_clients()
    assert bench.states() == {"good": "delivered"}
