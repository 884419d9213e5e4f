"""What CloudWatch says of a target; whoever does not say that all is well leaves it unknown. Against moto's server."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from reprocessing.domain.safety.health_check import HealthResult, HealthUnknown, Healthy, Unhealthy
from reprocessing.gateways import aws
from reprocessing.gateways.aws import clients
from reprocessing.gateways.aws_services import cloudwatch_alarms
from tests.nobody import nobody
from tests.reprocessing.gateways.aws_services.conftest import put_values

REGION = "eu-west-1"
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
NO_ALARM = HealthUnknown(f"CloudWatch has no alarm of this name in {REGION}")
NO_AGE = HealthUnknown("CloudWatch has had no age of its oldest message for ten minutes: nobody uses the queue")


def put_alarm(cloudwatch: Any, name: str, state: str | None, reason: str = "it said so") -> None:  # noqa: ANN401
    cloudwatch.put_metric_alarm(
        AlarmName=name, MetricName="m", Namespace="n", Period=60, EvaluationPeriods=1, Threshold=1,
        ComparisonOperator="GreaterThanThreshold", Statistic="Maximum",
    )  # fmt: skip
    if state:
        cloudwatch.set_alarm_state(AlarmName=name, StateValue=state, StateReason=reason)


def put_age(cloudwatch: Any, queue: str, *ages: tuple[float, float]) -> None:  # noqa: ANN401
    """Minutes ago, and the age then."""
    values = {NOW - timedelta(minutes=ago): age for ago, age in ages}
    put_values(cloudwatch, queue, "ApproximateAgeOfOldestMessage", values)


class Counted:
    def __init__(self, inner: clients.AwsClient) -> None:
        self._inner = inner
        self.calls: list[int] = []

    def describe_alarms(self, **asked: Any) -> dict[str, Any]:  # noqa: ANN401
        self.calls.append(len(asked["AlarmNames"]))
        return self._inner.describe_alarms(**asked)

    def get_metric_data(self, **asked: Any) -> dict[str, Any]:  # noqa: ANN401
        self.calls.append(len(asked["MetricDataQueries"]))
        return self._inner.get_metric_data(**asked)


@pytest.fixture
def counted(cloudwatch: Any, monkeypatch: pytest.MonkeyPatch) -> Counted:  # noqa: ANN401
    ours = Counted(clients.cloudwatch(REGION))
    monkeypatch.setattr("reprocessing.gateways.aws_services.cloudwatch_alarms.cloudwatch", lambda *_: ours)
    return ours


@pytest.mark.soak
def test_only_an_alarm_in_ok_is_well(cloudwatch: Any) -> None:  # noqa: ANN401
    for name, state in {"fine": "OK", "rings": "ALARM", "mute": "INSUFFICIENT_DATA"}.items():
        put_alarm(cloudwatch, name, state)
    put_alarm(cloudwatch, "chatty", "ALARM", "x" * 1_000)
    expected: dict[str, HealthResult] = {
        "fine": Healthy("in OK"),
        "rings": Unhealthy("in ALARM: it said so"),
        "mute": HealthUnknown("in INSUFFICIENT_DATA: it said so"),
        "nowhere": NO_ALARM,
        "chatty": Unhealthy(f"in ALARM: {'x' * 300}"),
    }
    assert cloudwatch_alarms.alarm_states(REGION, list(expected)) == expected
    elsewhere = HealthUnknown("CloudWatch has no alarm of this name in eu-west-2")
    assert cloudwatch_alarms.alarm_states("eu-west-2", ["fine"]) == {"fine": elsewhere}


def test_a_hundred_alarms_or_five_hundred_ages_are_asked_in_one_call(cloudwatch: Any, counted: Counted) -> None:  # noqa: ANN401
    names = [f"many-{number:03}" for number in range(501)]
    put_alarm(cloudwatch, names[100], "OK")
    expected = dict.fromkeys(names[:101], NO_ALARM) | {names[100]: Healthy("in OK")}
    assert cloudwatch_alarms.alarm_states(REGION, [*names[:101], *names[:101]]) == expected
    assert cloudwatch_alarms.oldest_message_ages(REGION, names, now=NOW) == dict.fromkeys(names, NO_AGE)
    assert cloudwatch_alarms.alarm_states(REGION, []) == {}
    assert cloudwatch_alarms.oldest_message_ages(REGION, [], now=NOW) == {}
    assert counted.calls == [100, 1, 500, 1]


def test_the_newest_age_of_the_last_ten_minutes_counts(cloudwatch: Any) -> None:  # noqa: ANN401
    put_age(cloudwatch, "young", (8, 999), (2, 30))
    put_age(cloudwatch, "old", (3, 10), (1, 301))
    put_age(cloudwatch, "idle", (20, 1))
    said = cloudwatch_alarms.oldest_message_ages(REGION, ["young", "old", "idle", "nowhere"], now=NOW)
    assert said == {"young": 30.0, "old": 301.0, "idle": NO_AGE, "nowhere": NO_AGE}


def test_where_cloudwatch_does_not_answer_all_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    with nobody() as port:
        monkeypatch.setenv("AWS_ENDPOINT_URL_CLOUDWATCH", f"http://127.0.0.1:{port}")
        aws.forget_clients()
        found = [
            *cloudwatch_alarms.alarm_states(REGION, ["a"]).values(),
            *cloudwatch_alarms.oldest_message_ages(REGION, ["q"], now=NOW).values(),
        ]
    aws.forget_clients()
    whys = [one.why for one in found if isinstance(one, HealthUnknown)]
    assert [why.split(":")[0] for why in whys] == ["DescribeAlarms failed", "GetMetricData failed"]
    cure = ". Check the endpoint, the network and the credentials of this process"
    assert [why.endswith(cure) for why in whys] == [True, True]


def test_whoever_may_not_ask_is_told_which_right_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    class Denying:
        def describe_alarms(self, **_: object) -> None:
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "DescribeAlarms")

    monkeypatch.setattr("reprocessing.gateways.aws_services.cloudwatch_alarms.cloudwatch", lambda *_: Denying())
    why = "DescribeAlarms failed: AccessDenied (no). Allow cloudwatch:DescribeAlarms to the role of this process"
    assert cloudwatch_alarms.alarm_states(REGION, ["a"]) == {"a": HealthUnknown(why)}
