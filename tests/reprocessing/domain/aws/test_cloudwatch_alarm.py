"""An alarm that was put as wanted has no differences, and every change of it is found."""

from __future__ import annotations

from typing import Any

import pytest

from reprocessing.domain.aws import cloudwatch_alarm
from reprocessing.domain.aws.cloudwatch_alarm import Alarm, AlarmMissing, ParameterDiffers, differences
from reprocessing.domain.aws.metric_names import METRICS

EVERY = [
    *cloudwatch_alarm.alarms_of_dlq(
        "orders", "orders-dlq", ("orders", "returns"), namespace="Redrive", retention=1_209_600
    ),
    *cloudwatch_alarm.alarms_of_target("orders", namespace="Redrive"),
    *cloudwatch_alarm.alarms_of_service(namespace="Redrive"),
]
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


def test_thresholds_are_any_message_in_a_dlq_and_5_minutes_of_age_three_times() -> None:
    present, age = BY_NAME["redrive-orders-messages-present"], BY_NAME["redrive-orders-age-too-high"]
    assert (present.threshold, present.above, present.period, present.periods) == (0, True, 60, 1)
    assert (age.threshold, age.above, age.period, age.periods) == (300, True, 60, 3)
    assert {one.missing for one in (present, age)} == {"notBreaching"}


def test_only_the_alarm_for_a_dead_service_is_in_alarm_without_data() -> None:
    assert [one.name for one in EVERY if one.missing == "breaching"] == ["redrive-consumes-nothing"]


def test_every_alarm_is_on_a_published_metric() -> None:
    ours = {
        one.cloudwatch: {cloudwatch_alarm.dimension_name(label) for label in one.labels}
        for one in METRICS
        if one.cloudwatch
    }
    for one in EVERY:
        for stream in one.streams:
            if stream.namespace == "Redrive":
                assert {name for name, _ in stream.dimensions} <= ours[stream.name]
    assert len(BY_NAME) == len(EVERY)


def test_the_alarm_on_expiring_messages_says_when_and_the_command_to_capture() -> None:
    assert BY_NAME["redrive-orders-messages-expire"].means == (
        "The oldest message of orders-dlq has used up 3/4 of its retention: SQS deletes it within about 4 days, "
        "sooner by as long as it lay in its queue before it died. A message that is not captured is then lost. "
        "Run: manage.py drain_dlq orders, a dry run, which captures."
    )
