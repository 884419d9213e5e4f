"""An alarm that was put as wanted differs in nothing; whatever is changed of it is told."""

from __future__ import annotations

from typing import Any

import pytest

from reprocessing.domain.aws import cloudwatch_alarm
from reprocessing.domain.aws.cloudwatch_alarm import Alarm, Differs, Missing, differences
from reprocessing.domain.aws.metric_names import METRICS

EVERY = [
    *cloudwatch_alarm.of_dlq("orders", "orders-dlq", ("orders", "returns"), namespace="Redrive", retention=1_209_600),
    *cloudwatch_alarm.of_target("orders", namespace="Redrive"),
    *cloudwatch_alarm.of_service(namespace="Redrive"),
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
    assert differences(one, None) == (Missing(),)


@pytest.mark.parametrize(
    ("changed", "value"),
    [
        ("Threshold", 7), ("EvaluationPeriods", 9), ("ComparisonOperator", "LessThanThreshold"), ("Period", 10),
        ("TreatMissingData", "missing"), ("ActionsEnabled", False), ("AlarmDescription", ""), ("Statistic", "Average"),
        ("Dimensions", []), ("AlarmActions", []),
    ],
)  # fmt: skip
def test_what_was_changed_of_it_is_told(changed: str, value: object) -> None:
    one = BY_NAME["redrive-orders-age-too-high"]
    found = described(one, "arn:a") | {changed: value}
    wanted = one.request(("arn:a",))[changed]
    assert differences(one, found, ("arn:a",)) == (Differs(changed, value, wanted),)


def test_an_alarm_on_the_visible_messages_alone_is_not_the_one_that_is_wanted() -> None:
    """It falls silent while a capture hides the messages."""
    one = BY_NAME["redrive-orders-messages-present"]
    silent = one.request() | {
        "Namespace": "AWS/SQS", "MetricName": "ApproximateNumberOfMessagesVisible", "Statistic": "Sum", "Period": 60,
        "Dimensions": [{"Name": "QueueName", "Value": "orders-dlq"}],
    }  # fmt: skip
    del silent["Metrics"]
    told = {each.what for each in differences(one, silent) if isinstance(each, Differs)}
    assert told == {"Metrics", "Namespace", "MetricName", "Statistic", "Period", "Dimensions"}


def test_thresholds_are_those_that_teams_know() -> None:
    """Any message in a dead-letter queue, at once; five minutes of age, three minutes in a row."""
    present, age = BY_NAME["redrive-orders-messages-present"], BY_NAME["redrive-orders-age-too-high"]
    assert (present.threshold, present.above, present.period, present.periods) == (0, True, 60, 1)
    assert (age.threshold, age.above, age.period, age.periods) == (300, True, 60, 3)
    assert {one.missing for one in (present, age)} == {"notBreaching"}


def test_who_tells_nothing_is_dead() -> None:
    assert [one.name for one in EVERY if one.missing == "breaching"] == ["redrive-consumes-nothing"]


def test_every_alarm_is_on_a_metric_that_is_told() -> None:
    ours = {
        one.cloudwatch: {cloudwatch_alarm.dimension(label) for label in one.labels} for one in METRICS if one.cloudwatch
    }
    for one in EVERY:
        for stream in one.streams:
            if stream.namespace == "Redrive":
                assert {name for name, _ in stream.dimensions} <= ours[stream.name]
    assert len(BY_NAME) == len(EVERY)


def test_the_alarm_on_what_expires_says_until_when_and_the_one_command_that_captures() -> None:
    assert BY_NAME["redrive-orders-messages-expire"].means == (
        "The oldest message of orders-dlq has used up 3/4 of its retention: SQS drops it within about 4 days, "
        "sooner by as long as it lay in its queue before it died, and what was not captured is lost. "
        "Capture: manage.py drain_dlq orders, a dry run."
    )
