"""Celery workers delete what they reject from a queue without a redrive policy: letters do not go to such a one."""

from __future__ import annotations

import json

import pytest
from django.db import transaction

from reprocessing.models.safety import HealthCheck
from reprocessing.pipeline.safety import run_health_checks
from reprocessing.store.targets import targets
from tests.envelopes import task
from tests.reprocessing.pipeline.bench import BRISK, Workbench

pytestmark = pytest.mark.django_db(transaction=True)


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
    run_health_checks.run_due(conf=BRISK, only=[bench.target.pk])
    assert bench.replay(1).taken == 0
    assert "no redrive policy" in HealthCheck.objects.get(target=bench.target).detail
    give_policy(bench)
    run_health_checks.run_due(conf=BRISK, only=[bench.target.pk])
    assert bench.replay(2).taken == 1


def test_a_queue_that_is_no_workers_queue_any_more_is_not_asked_for_a_policy() -> None:
    bench = Workbench()
    of_workers(bench)
    of_workers(bench)
    assert HealthCheck.objects.filter(target=bench.target).count() == 1
    of_workers(bench, "sqs")
    assert not HealthCheck.objects.filter(target=bench.target).exists()
