"""Three hundred DLQs are planned in the time that one is, because only what changes and depends on queues is asked."""

from __future__ import annotations

import time

import pytest
from pytest_django import DjangoAssertNumQueries

from reprocessing.models import DeadLetterQueue, Policy, Source, Target
from tests.reprocessing.commands.configuration.conftest import Write
from tests.reprocessing.commands.conftest import Ask

pytestmark = pytest.mark.django_db
MANY = 300


@pytest.mark.soak
def test_a_policy_of_three_hundred_dlqs_is_changed_after_a_plan_of_less_than_two_seconds(
    ask: Ask, write: Write, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    policy = Policy.objects.create(name="careful", settings={"max_attempts": 3})
    names = [f"orders-{number:03}" for number in range(MANY)]
    arn = "arn:aws:sqs:us-east-1:000000000000:"
    rows = DeadLetterQueue.objects.bulk_create(
        DeadLetterQueue(
            name=one, url=f"http://127.0.0.1:9/0/{one}", arn=f"{arn}{one}", region="us-east-1", policy=policy
        )
        for one in names
    )
    targets = Target.objects.bulk_create(
        Target(arn=f"{arn}{one}-source", url=f"http://127.0.0.1:9/0/{one}-source", region="us-east-1", rate=10)
        for one in names
    )
    Source.objects.bulk_create(
        Source(dlq=dlq, arn=target.arn, target=target) for dlq, target in zip(rows, targets, strict=True)
    )
    file = write(ask("export_config").replace("max_attempts: 3", "max_attempts: 4"))
    began = time.process_time()
    with django_assert_max_num_queries(30):
        said = ask("apply_config", file)
    assert time.process_time() - began < 2
    assert said.endswith("This was a dry run. Add --confirm to apply it: 301 objects changed.\n")
