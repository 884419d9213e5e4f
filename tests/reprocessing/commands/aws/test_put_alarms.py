"""put_alarms: the difference first, nothing without --confirm, and a second time changes nothing. On moto's server."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from typing import Any, TypeAlias

import boto3
import pytest
from django.core.management import CommandError, call_command
from pytest_django.fixtures import Settings

from reprocessing.domain.aws import metric_names
from reprocessing.domain.targets.target_kind import TargetKind
from reprocessing.gateways import aws
from reprocessing.models import DeadLetterQueue, Target
from reprocessing.pipeline.aws import collect_metrics
from tests.contract.endpoints import moto_endpoint
from tests.reprocessing.commands.conftest import Ask, AskJson
from tests.reprocessing.pipeline.bench import Workbench

pytestmark = pytest.mark.django_db(transaction=True)

CloudWatch: TypeAlias = Any  # a client of boto3
TOPIC = "arn:aws:sns:eu-west-1:000000000000:on-call"


@pytest.fixture
def cloudwatch(settings: Settings) -> Iterator[CloudWatch]:
    settings.REDRIVE = {**settings.REDRIVE, "CLOUDWATCH": "Redrive/Tests"}
    with moto_endpoint() as moto, pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL_CLOUDWATCH", moto.url)
        patch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
        aws.forget_clients()
        client = boto3.client("cloudwatch", region_name="eu-west-1")
        found = client.describe_alarms()["MetricAlarms"]  # moto keeps what other tests of this process have put
        client.delete_alarms(AlarmNames=[one["AlarmName"] for one in found])
        yield client
    aws.forget_clients()


def names(cloudwatch: CloudWatch) -> set[str]:
    return {one["AlarmName"] for one in cloudwatch.describe_alarms()["MetricAlarms"]}


@pytest.fixture
def put(ask_json: AskJson) -> AskJson:
    return lambda *given: ask_json("put_alarms", *given)


@pytest.mark.soak
def test_nothing_is_put_without_confirm_and_nothing_differs_afterwards(put: AskJson, cloudwatch: CloudWatch) -> None:
    bench = Workbench()
    dry = put()
    assert ({one["state"] for one in dry["alarms"]}, dry["put"], names(cloudwatch)) == ({"missing"}, [], set())
    wet = put("--confirm", "--action", TOPIC)
    assert set(wet["put"]) == names(cloudwatch) == {one["alarm"] for one in dry["alarms"]}
    assert f"redrive-{bench.name}-messages-present" in names(cloudwatch)
    assert "redrive-consumes-nothing" in names(cloudwatch)
    again = put("--confirm", "--action", TOPIC)
    assert ({one["state"] for one in again["alarms"]}, again["put"]) == ({"as wanted"}, [])


@pytest.mark.parametrize(
    ("actions", "told"),
    [
        (["arn:x"], "cannot be the action of an alarm"),
        (["arn:aws:sqs:eu-west-1:000000000000:orders"], "cannot be the action of an alarm"),
        ([f"{TOPIC}\x1b[2J"], r"on-call\\x1b\[2J' cannot be the action of an alarm"),
        ([f"{TOPIC}-{n}" for n in range(6)], "CloudWatch allows 5 actions of an alarm; 6 were given in eu-west-1"),
    ],
)
def test_an_action_that_cloudwatch_would_refuse_is_refused_in_a_dry_run(actions: list[str], told: str) -> None:
    with pytest.raises(CommandError, match=told):
        call_command("put_alarms", *(word for one in actions for word in ("--action", one)), stdout=StringIO())


@pytest.mark.soak
def test_each_alarm_tells_what_is_of_its_region_and_none_is_put_where_one_could_tell_nothing(
    put: AskJson,
    cloudwatch: CloudWatch,
) -> None:
    bench = Workbench()
    DeadLetterQueue.objects.filter(pk=bench.dlq.pk).update(region="eu-central-1")
    there = boto3.client("cloudwatch", region_name="eu-central-1")
    for confirm in ([], ["--confirm"]):
        with pytest.raises(CommandError, match="The alarms in eu-central-1 have no --action of their region"):
            put("--action", TOPIC, *confirm)
    assert (names(cloudwatch), names(there)) == (set(), set())
    other = TOPIC.replace("eu-west-1", "eu-central-1")
    put("--action", TOPIC, "--action", other, "--confirm")
    told = [one["AlarmActions"] for place in (cloudwatch, there) for one in place.describe_alarms()["MetricAlarms"]]
    assert {tuple(one) for one in told} == {(TOPIC,), (other,)}
    for one in names(there):
        there.delete_alarms(AlarmNames=[one])


@pytest.mark.soak
def test_what_somebody_changed_is_told_and_mended_and_their_actions_stay(
    put: AskJson, ask: Ask, cloudwatch: CloudWatch
) -> None:
    bench = Workbench()
    put("--confirm", "--action", TOPIC)
    name = f"redrive-{bench.name}-age-too-high"
    (found,) = cloudwatch.describe_alarms(AlarmNames=[name])["MetricAlarms"]
    kept = {
        key: found[key]
        for key in (
            "AlarmName", "Namespace", "MetricName", "Dimensions", "Period", "EvaluationPeriods", "ComparisonOperator",
            "Statistic", "AlarmActions", "TreatMissingData", "AlarmDescription", "ActionsEnabled",
        )
    }  # fmt: skip
    others = {"OKActions": [f"{TOPIC}-ok"], "InsufficientDataActions": [f"{TOPIC}-nothing"]}
    cloudwatch.put_metric_alarm(**kept, **others, Threshold=9_999)
    told = ask("put_alarms")
    assert f"{name} (eu-west-1): differs\n  Threshold: is 9999.0, wanted 300" in told
    assert put("--confirm")["put"] == [name]
    (mended,) = cloudwatch.describe_alarms(AlarmNames=[name])["MetricAlarms"]
    assert (mended["Threshold"], mended["AlarmActions"]) == (300, [TOPIC])
    assert {name: mended[name] for name in others} == others


@pytest.mark.soak
def test_targets_of_one_name_have_an_alarm_each_on_the_series_that_is_told_of_it(
    put: AskJson, cloudwatch: CloudWatch
) -> None:
    bench = Workbench()
    function = f"arn:aws:lambda:eu-west-1:000000000000:function:{bench.source_url.rsplit('/', 1)[-1]}"
    Target.objects.create(kind=TargetKind.LAMBDA, arn=function, region="eu-west-1")
    put("--confirm")
    rings = {f"redrive-{arn}-breaker-open": arn for arn in (bench.target.arn, function)}
    of_breakers = {
        one["AlarmName"]: one["Dimensions"][0]["Value"]
        for one in cloudwatch.describe_alarms()["MetricAlarms"]
        if one["AlarmName"].endswith("-breaker-open")
    }
    told = {one.labels[0] for one in collect_metrics.samples(count_lag=0) if one.metric is metric_names.BREAKER}
    assert (of_breakers, told) == (rings, set(rings.values()))


@pytest.mark.soak
def test_a_named_dlq_has_its_own_alarms_alone(put: AskJson, cloudwatch: CloudWatch) -> None:
    one, _ = Workbench(), Workbench()
    assert {each["dlq"] for each in put(one.name)["alarms"]} == {one.name}


@pytest.mark.soak
def test_without_a_namespace_only_sqs_s_own_metrics_have_alarms(
    put: AskJson, ask: Ask, cloudwatch: CloudWatch, settings: Settings
) -> None:
    settings.REDRIVE = {**settings.REDRIVE, "CLOUDWATCH": ""}
    bench = Workbench()
    assert [one["alarm"].removeprefix(f"redrive-{bench.name}-") for one in put()["alarms"]] == [
        "age-too-high", "messages-expire", "messages-present",
    ]  # fmt: skip
    assert "REDRIVE_CLOUDWATCH" in ask("put_alarms")


@pytest.mark.soak
def test_alarms_on_queues_of_another_account_are_for_that_account(
    put: AskJson, ask: Ask, cloudwatch: CloudWatch
) -> None:
    bench = Workbench()
    DeadLetterQueue.objects.update(role_arn="arn:aws:iam::111111111111:role/theirs")
    assert not [one for one in put(bench.name)["alarms"] if one["alarm"].endswith("messages-present")]
    assert f"{bench.name}: its queues are in another account" in ask("put_alarms", bench.name)


@pytest.mark.parametrize(
    ("endpoint", "why"),
    [
        (None, "not in AWS, so CloudWatch has no metrics of them"),
        ("http://127.0.0.1:1", r"DescribeAlarms failed: .* Check the endpoint"),
    ],
)
def test_alarms_that_cannot_be_asked_for_are_a_sentence(
    put: AskJson, monkeypatch: pytest.MonkeyPatch, endpoint: str | None, why: str
) -> None:
    Workbench()
    monkeypatch.delenv("AWS_ENDPOINT_URL_CLOUDWATCH", raising=False)
    if endpoint:
        monkeypatch.setenv("AWS_ENDPOINT_URL_CLOUDWATCH", endpoint)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    aws.forget_clients()
    try:
        with pytest.raises(CommandError, match=why):
            put()
    finally:
        aws.forget_clients()
