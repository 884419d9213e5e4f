"""The consumer was mended, but not for every letter: those come back, and are parked when their attempts are spent."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from datetime import timedelta

import pytest
from django.conf import settings

from reprocessing.models import Attempt, DeadLetter
from reprocessing.pipeline import drain
from reprocessing.pipeline.drain import Hands
from reprocessing.rate import Rates
from tests.reprocessing.pipeline.bench import BRISK, Workbench
from tests.stories.consumer import Consumer

pytestmark = pytest.mark.django_db(transaction=True)


def test_what_fails_again_is_parked_after_its_attempts_and_never_counted_as_delivered() -> None:
    bench = Workbench(fields={"max_attempts": 2}, conf=replace(BRISK, long_poll=1))
    bench.sqs.set_queue_attributes(
        QueueUrl=bench.origin_url,
        Attributes={
            "VisibilityTimeout": "1",
            "RedrivePolicy": json.dumps({"deadLetterTargetArn": bench.dlq.arn, "maxReceiveCount": "1"}),
        },
    )
    bench.judge_by_absence(window=1.5)
    for number in range(30):
        bench.bury(f"{number}")
    over = threading.Event()
    hands = Hands(bench.conf, Rates.at(settings.REDIS_URL), lambda: 0.5, "a test", over.is_set)
    with Consumer(bench.origin_url, lambda one: int(one["Body"]) % 3 != 0) as consumer:
        drain.collect(bench.dlq, hands, heard=lambda _: None, seconds=30)
        run = drain.begin(bench.dlq, name="again", limit=None, asked_by="a test")
        tally = drain.work(run, hands, told=lambda _: None)
    assert (tally.presumed, tally.parked, tally.failed_attempts, tally.open) == (20, 10, 20, 0)
    poison = DeadLetter.objects.filter(state="parked")
    assert {int(bytes(one.payload.body)) % 3 for one in poison} == {0}
    assert set(poison.values_list("attempts", "reason")) == {(2, "attempts_spent")}
    assert Attempt.objects.count() == 40
    assert sorted(int(one["Body"]) for one in consumer.done) == [n for n in range(30) if n % 3]
    assert bench.left() == 0
    assert timedelta(0) == bench.conf.count_lag
