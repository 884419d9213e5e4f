"""CloudWatch is told what is so, what grew since the last time once, and never twice. Against moto's server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest

from reprocessing.domain.errors import CloudWatchIsOutOfReach
from reprocessing.gateways import aws
from reprocessing.gateways.aws_services import cloudwatch_put
from reprocessing.gateways.aws_services.cloudwatch_put import Value
from reprocessing.pipeline.aws import publish_metrics
from tests.contract.endpoints import moto_endpoint
from tests.reprocessing.pipeline.bench import Workbench

pytestmark = pytest.mark.django_db(transaction=True)

REGION, SPACE = "eu-west-1", "Redrive/Tests"
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def cloudwatch() -> Iterator[Any]:
    with moto_endpoint() as moto, pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL_CLOUDWATCH", moto.url)
        aws.forget()
        yield boto3.client("cloudwatch", region_name=REGION)
    aws.forget()


def told(cloudwatch: Any, name: str, stat: str = "Sum", **dimensions: str) -> list[float]:  # noqa: ANN401
    """The values of a metric, minute by minute, the oldest first."""
    found = cloudwatch.get_metric_statistics(
        Namespace=SPACE, MetricName=name, Dimensions=[{"Name": n, "Value": v} for n, v in dimensions.items()],
        StartTime=NOW - timedelta(minutes=5), EndTime=NOW + timedelta(minutes=30), Period=60, Statistics=[stat],
    )["Datapoints"]  # fmt: skip
    return [one[stat] for one in sorted(found, key=lambda one: one["Timestamp"])]


def at(minute: int) -> int:
    return publish_metrics.everything(REGION, SPACE, now=NOW + timedelta(minutes=minute), count_lag=0)


def drained(*bodies: str) -> Workbench:
    bench = Workbench(fields={"max_attempts": 1})
    for body in bodies:
        bench.bury(body)
    bench.ready()
    with bench.refusing("bad"):
        bench.replay()
    return bench


@pytest.mark.soak
def test_counters_are_told_by_what_they_grew_and_others_as_they_are(cloudwatch: Any) -> None:  # noqa: ANN401
    at(-1)
    bench = drained("good", "better", "bad")
    assert at(0) > 0
    at(1)
    bench.bury("late")
    bench.ready()
    bench.replay()
    at(2)
    assert told(cloudwatch, "RedriveSuccess", Dlq=bench.name) == [2, 1]
    assert told(cloudwatch, "RedriveFailure", Dlq=bench.name) == [1]
    assert told(cloudwatch, "MessageMovedToParkingLot", Dlq=bench.name) == [1]
    assert told(cloudwatch, "ParkedLetters", "Maximum", Dlq=bench.name) == [1, 1, 1]
    assert told(cloudwatch, "BreakerState", "Maximum", Target=bench.origin_url.rsplit("/", 1)[-1]) == [0, 0, 0]
    assert told(cloudwatch, "EverythingStopped", "Maximum") == [0, 0, 0, 0]


def test_what_cloudwatch_did_not_take_is_told_the_next_time(
    cloudwatch: Any,  # noqa: ANN401
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    at(-1)
    bench = drained("good")
    with monkeypatch.context() as patch:
        patch.setattr(publish_metrics, "tell", _refuse)
        assert at(0) == 0
    at(1)
    assert told(cloudwatch, "RedriveSuccess", Dlq=bench.name) == [1]


def _refuse(*_: object, **__: object) -> int:
    raise CloudWatchIsOutOfReach("no")


class Ear:
    """What CloudWatch is told, without one; where it is deaf, nothing is taken."""

    def __init__(self) -> None:
        self.deaf = False
        self.heard: list[Value] = []

    def tell(self, _region: str, _namespace: str, values: Sequence[Value], *, now: datetime) -> int:
        assert now.tzinfo
        if self.deaf:
            raise CloudWatchIsOutOfReach("no")
        self.heard = list(values)
        return len(values)

    def successes(self) -> list[float]:
        """What it was told last of letters that were delivered."""
        return [one.value for one in self.heard if one.name == "RedriveSuccess"]

    def gauges(self) -> list[float]:
        """What it was told last of letters that are unfinished."""
        return [one.value for one in self.heard if one.name == "UnfinishedLetters"]


@pytest.fixture
def ear(monkeypatch: pytest.MonkeyPatch) -> Ear:
    ear = Ear()
    monkeypatch.setattr(publish_metrics, "tell", ear.tell)
    return ear


def _one_more(bench: Workbench, body: str) -> None:
    bench.bury(body)
    bench.ready()
    bench.replay()


def test_who_begins_to_tell_tells_of_what_comes_from_now_on(ear: Ear, caplog: pytest.LogCaptureFixture) -> None:
    """The history of months is no minute's: the alarms would ring."""
    bench = drained("good", "better")
    at(0)
    assert (ear.successes(), ear.gauges()) == ([], [0])
    (said,) = [one.getMessage() for one in caplog.records if one.name == publish_metrics.__name__]
    assert said == (
        "CloudWatch was told nothing for 15 minutes, or never anything. What 3 counters had grown by is left out: "
        "it would seem to be of one minute. They are told from now on."
    )
    _one_more(bench, "late")
    at(1)
    assert ear.successes() == [1]


@pytest.mark.parametrize(("minutes", "told"), [(15, [1.0]), (16, [])])
def test_what_was_counted_while_nothing_was_told_is_told_after_a_short_while_only(
    ear: Ear, minutes: int, told: list[float]
) -> None:
    at(0)
    bench = drained("good")
    at(minutes)
    assert ear.successes() == told
    _one_more(bench, "late")
    at(minutes + 1)
    assert ear.successes() == [1]


def test_what_cloudwatch_does_not_take_is_told_in_full_once_it_does_however_long_that_lasts(ear: Ear) -> None:
    at(0)
    ear.deaf = True
    bench = drained("good")
    for minutes in range(10, 60, 10):
        at(minutes)
    _one_more(bench, "late")
    ear.deaf = False
    at(60)
    assert ear.successes() == [2.0]


def test_values_go_out_five_hundred_at_a_time_and_the_rest_is_known(
    cloudwatch: Any,  # noqa: ANN401
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    values = [Value("Many", (("Dlq", f"d{number}"),), "Count", 1.0) for number in range(1_200)]
    assert cloudwatch_put.tell(REGION, SPACE, values, now=NOW) == 1_200
    assert told(cloudwatch, "Many", Dlq="d1199") == [1]
    monkeypatch.setattr(
        cloudwatch_put, "_datum", lambda one, now: {} if one.dimensions[0][1] == "d700" else _datum(one, now)
    )
    assert cloudwatch_put.tell(REGION, SPACE, values, now=NOW) == 500


_datum = cloudwatch_put._datum


@pytest.mark.soak
def test_a_cloudwatch_that_does_not_answer_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = drained("good")
    monkeypatch.setenv("AWS_ENDPOINT_URL_CLOUDWATCH", "http://127.0.0.1:1")
    aws.forget()
    try:
        assert at(0) == 0
        with pytest.raises(CloudWatchIsOutOfReach, match="Check the endpoint"):
            cloudwatch_put.tell(REGION, SPACE, [Value("One", (), "Count", 1.0)], now=NOW)
    finally:
        aws.forget()
    assert bench.states() == {"good": "delivered"}
