"""Due health checks run at the same time; without a finding nothing is sent."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import boto3
import pytest
from django.db import transaction

from reprocessing.domain.safety.health_check import HealthResult, HealthUnknown, Healthy
from reprocessing.domain.safety.url_policy import AllowList, allow_list
from reprocessing.gateways import aws, http
from reprocessing.gateways.aws_services import cloudwatch_alarms
from reprocessing.models import Target
from reprocessing.models.safety import CheckKind, HealthCheck
from reprocessing.pipeline.safety import run_health_checks
from reprocessing.store.safety import health_checks
from reprocessing.store.safety.health_checks import CheckQuestion
from reprocessing.store.targets import targets
from tests.contract.endpoints import moto_endpoint
from tests.envelopes import task
from tests.reprocessing.pipeline.bench import BRISK, Workbench, enqueued
from tests.reprocessing.web_servers import answering, serving, status

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(scope="module")
def cloudwatch() -> Iterator[Any]:
    with moto_endpoint() as moto, pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL_CLOUDWATCH", moto.url)
        aws.forget_clients()
        yield boto3.client("cloudwatch", region_name="eu-west-1")
    aws.forget_clients()


def conf(*hosts: str) -> Any:  # noqa: ANN401
    allowed = allow_list(hosts)
    assert isinstance(allowed, AllowList)
    return replace(BRISK, outbound_hosts=allowed)


def add(target: Target, kind: CheckKind, subject: str = "", **rest: Any) -> None:  # noqa: ANN401
    health_checks.add_check(target.pk, CheckQuestion(kind, subject, **rest), by="ann", reason="why")


def looked(bench: Workbench, *hosts: str) -> dict[str, tuple[str, str]]:
    """Run all checks of the target, and return finding and detail by kind."""
    run_health_checks.run_due(conf=conf(*hosts), only=[bench.target.pk])
    return {check.kind: (check.verdict, check.detail) for check in health_checks.checks_of([bench.target.pk])}


def alarm(cloudwatch: Any, name: str, state: str) -> None:  # noqa: ANN401
    cloudwatch.put_metric_alarm(
        AlarmName=name, MetricName="m", Namespace="n", Period=60, EvaluationPeriods=1, Threshold=1,
        ComparisonOperator="GreaterThanThreshold", Statistic="Maximum",
    )  # fmt: skip
    cloudwatch.set_alarm_state(AlarmName=name, StateValue=state, StateReason="so")


def test_each_kind_of_check_has_its_finding(cloudwatch: Any) -> None:  # noqa: ANN401
    bench = Workbench()
    alarm(cloudwatch, "orders", "OK")
    bench.sqs.send_message(QueueUrl=bench.source_url, MessageBody="x")
    with serving(answering(status(200))) as server:
        host = f"127.0.0.1:{server.port}"
        add(bench.target, CheckKind.HTTP, f"http://{host}/health")
        add(bench.target, CheckKind.ALARM, "orders")
        add(bench.target, CheckKind.DEPTH, ceiling=1)
        add(bench.target, CheckKind.AGE, ceiling=60)
        assert looked(bench, host) == {
            "http": ("healthy", "it answered 200"),
            "alarm": ("healthy", "in OK"),
            "depth": ("healthy", "its depth is 1 messages"),
            "age": (
                "unknown",
                "CloudWatch has had no age of its oldest message for ten minutes: nobody uses the queue",
            ),
        }


def test_a_queue_above_its_depth_limit_is_unhealthy() -> None:
    bench = Workbench()
    for _ in range(2):
        bench.sqs.send_message(QueueUrl=bench.source_url, MessageBody="x")
    bench.sqs.receive_message(QueueUrl=bench.source_url)
    add(bench.target, CheckKind.DEPTH, ceiling=1)
    assert looked(bench) == {"depth": ("unhealthy", "its depth is 2 messages, above its ceiling of 1")}


@pytest.mark.parametrize(
    ("said", "empty", "found"),
    [
        (cloudwatch_alarms.NOBODY_USES_IT, True, ("healthy", "nobody uses it, and it is empty")),
        (cloudwatch_alarms.NOBODY_USES_IT, False, ("unknown", cloudwatch_alarms.NOBODY_USES_IT.why)),
        (61.0, True, ("unhealthy", "the age of its oldest message is 61 seconds, above its ceiling of 60")),
    ],
)
def test_a_queue_is_healthy_if_it_is_unused_and_empty_or_its_messages_are_young(
    monkeypatch: pytest.MonkeyPatch, said: HealthUnknown | float, empty: bool, found: tuple[str, str]
) -> None:
    bench = Workbench()
    monkeypatch.setattr(
        cloudwatch_alarms, "oldest_message_ages", lambda _region, names, **_: dict.fromkeys(names, said)
    )
    add(bench.target, CheckKind.AGE, ceiling=60)
    if not empty:
        bench.sqs.send_message(QueueUrl=bench.source_url, MessageBody="x")
    assert looked(bench) == {"age": found}


def test_a_queue_out_of_reach_is_unknown_and_other_checks_have_findings(cloudwatch: Any) -> None:  # noqa: ANN401
    bench = Workbench()
    alarm(cloudwatch, "fine", "OK")
    endpoint = os.environ["AWS_ENDPOINT_URL_SQS"]
    Target.objects.filter(pk=bench.target.pk).update(url=f"{endpoint}/000000000000/nobody")
    add(bench.target, CheckKind.DEPTH, ceiling=1)
    add(bench.target, CheckKind.ALARM, "fine")
    found = looked(bench)
    assert (found["alarm"], found["depth"][0]) == (("healthy", "in OK"), "unknown")
    assert "GetQueueAttributes failed" in found["depth"][1]


def test_a_check_that_fails_leaves_the_others_their_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reprocessing.gateways.http.check", Mock(side_effect=ZeroDivisionError))
    bench = Workbench()
    add(bench.target, CheckKind.HTTP, "http://127.0.0.1:1/")
    add(bench.target, CheckKind.DEPTH, ceiling=1)
    assert looked(bench) == {
        "http": ("unknown", "the check itself failed (ZeroDivisionError); the log of this process says where"),
        "depth": ("healthy", "its depth is 0 messages"),
    }


def test_checks_run_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    together = threading.Barrier(20, timeout=60)

    def answered(*_: object, **__: object) -> HealthResult:
        together.wait()  # one after the other they never come together
        return Healthy("it answered 200")

    monkeypatch.setattr(http, "check", answered)
    bench = Workbench()
    for number in range(20):
        add(bench.target, CheckKind.HTTP, f"http://127.0.0.1:1/{number}")
    run_health_checks.run_due(conf=conf(), only=[bench.target.pk])
    assert [check.verdict for check in health_checks.checks_of([bench.target.pk])] == ["healthy"] * 20


def test_due_checks_run_in_rounds_until_none_is_due(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_health_checks, "ROUND_SIZE", 2)
    bench = enqueued("a")
    add(bench.target, CheckKind.DEPTH, ceiling=9)
    for number in range(4):
        add(bench.target, CheckKind.HTTP, f"http://127.0.0.1:1/{number}")
    assert [run_health_checks.run_due(conf=conf()), run_health_checks.run_due(conf=conf())] == [5, 0]
    assert [check.checked_at is None for check in health_checks.checks_of([bench.target.pk])] == [False] * 5


def of_workers(bench: Workbench, kind: str = "celery") -> None:
    with transaction.atomic():
        targets.write_target(bench.target.arn, {"kind": kind})


def give_policy(bench: Workbench) -> None:
    policy = {"deadLetterTargetArn": bench.arn(bench.dlq_url), "maxReceiveCount": 3}
    bench.sqs.set_queue_attributes(QueueUrl=bench.source_url, Attributes={"RedrivePolicy": json.dumps(policy)})


def test_nothing_goes_to_workers_before_their_queue_was_seen_with_a_redrive_policy() -> None:
    bench = Workbench()
    of_workers(bench)
    bench.enqueue(task(queue=bench.name).decode())
    assert bench.replay(1).taken == 0
    run_health_checks.run_due(conf=bench.conf, only=[bench.target.pk])
    assert bench.replay(1).taken == 0
    assert "no redrive policy" in HealthCheck.objects.get(target=bench.target).detail
    give_policy(bench)
    run_health_checks.run_due(conf=bench.conf, only=[bench.target.pk])
    assert bench.replay(2).taken == 1


def test_a_queue_that_is_no_workers_queue_any_more_is_not_asked_for_a_policy() -> None:
    bench = Workbench()
    of_workers(bench)
    of_workers(bench)
    assert HealthCheck.objects.filter(target=bench.target).count() == 1
    of_workers(bench, "sqs")
    assert not HealthCheck.objects.filter(target=bench.target).exists()
