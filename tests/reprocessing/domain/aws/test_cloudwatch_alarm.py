"""An alarm that was put as wanted has no differences, and every change of it is found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reprocessing.domain.aws import cloudwatch_alarm, metric_names
from reprocessing.domain.aws.cloudwatch_alarm import Alarm, AlarmMissing, ParameterDiffers, differences
from reprocessing.domain.aws.metric_names import METRICS

FOLDER = Path(__file__).parent


def every() -> list[Alarm]:
    return [
        *cloudwatch_alarm.alarms_of_dlq(
            "orders", "orders-dlq", ("orders", "returns"), namespace="Redrive", retention=1_209_600
        ),
        *cloudwatch_alarm.alarms_of_target("orders", namespace="Redrive"),
        *cloudwatch_alarm.alarms_of_service(namespace="Redrive"),
    ]


EVERY = every()
BY_NAME = {one.name: one for one in EVERY}


def described(one: Alarm, *actions: str) -> dict[str, Any]:
    """As CloudWatch describes it: with more than was put, and lists in an order of its own."""
    found = one.request(actions) | {"StateValue": "OK", "OKActions": [], "AlarmArn": "arn:aws:cloudwatch:…"}
    return {name: value[::-1] if isinstance(value, list) else value for name, value in found.items()}


@pytest.mark.parametrize("one", EVERY, ids=lambda one: one.name)
def test_an_alarm_that_was_put_differs_in_nothing(one: Alarm) -> None:
    actions = ("arn:aws:sns:eu-west-1:1:a", "arn:aws:sns:eu-west-1:1:b")
    assert differences(one, described(one, *actions), actions) == ()
    assert differences(one, described(one, "arn:somebody's own"), ()) == ()
    assert differences(one, None) == (AlarmMissing(),)


@pytest.mark.parametrize(
    ("changed", "value"),
    [
        ("Threshold", 7), ("EvaluationPeriods", 9), ("ComparisonOperator", "LessThanThreshold"), ("Period", 10),
        ("TreatMissingData", "missing"), ("ActionsEnabled", False), ("AlarmDescription", ""), ("Statistic", "Average"),
        ("Dimensions", []), ("AlarmActions", []),
    ],
)  # fmt: skip
def test_a_changed_parameter_is_a_difference(changed: str, value: object) -> None:
    one = BY_NAME["redrive-orders-age-too-high"]
    found = described(one, "arn:a") | {changed: value}
    wanted = one.request(("arn:a",))[changed]
    assert differences(one, found, ("arn:a",)) == (ParameterDiffers(changed, value, wanted),)


def test_an_alarm_on_visible_messages_alone_differs_because_a_capture_hides_messages() -> None:
    one = BY_NAME["redrive-orders-messages-present"]
    silent = one.request() | {
        "Namespace": "AWS/SQS", "MetricName": "ApproximateNumberOfMessagesVisible", "Statistic": "Sum", "Period": 60,
        "Dimensions": [{"Name": "QueueName", "Value": "orders-dlq"}],
    }  # fmt: skip
    del silent["Metrics"]
    told = {each.what for each in differences(one, silent) if isinstance(each, ParameterDiffers)}
    assert told == {"Metrics", "Namespace", "MetricName", "Statistic", "Period", "Dimensions"}


def test_the_request_for_each_alarm() -> None:
    """`alarms.jsonl` has what CloudWatch is asked to put, an alarm a line."""
    found = [{"dlq": one.dlq, **one.request(("arn:a",))} for one in every()]
    assert found == [json.loads(line) for line in (FOLDER / "alarms.jsonl").read_text().splitlines()]


def test_a_dlq_of_fifo_keeps_a_message_for_its_whole_retention() -> None:
    alarms = list(cloudwatch_alarm.alarms_of_dlq("o", "o.fifo", (), namespace="Redrive", retention=1_209_600))
    assert "within about 4 days. A message" in alarms[1].description


def test_a_metric_that_is_not_published_has_no_alarm() -> None:
    with pytest.raises(ValueError, match="redrive_letters is not published to CloudWatch"):
        cloudwatch_alarm._own(metric_names.LETTERS, (), "Redrive", "Sum")


def test_every_alarm_is_on_a_published_metric() -> None:
    ours = {
        one.cloudwatch: {cloudwatch_alarm.dimension_name(label) for label in one.labels}
        for one in METRICS
        if one.cloudwatch
    }
    for one in EVERY:
        for stream in one.metrics:
            if stream.namespace == "Redrive":
                assert {name for name, _ in stream.dimensions} <= ours[stream.name]
    assert len(BY_NAME) == len(EVERY)
