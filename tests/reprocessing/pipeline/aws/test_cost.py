"""What a drain is told to cost, beside the local SQS's own log of its calls."""

from __future__ import annotations

from collections import Counter

import pytest

from reprocessing.domain.aws import pricing
from reprocessing.domain.aws.pricing import Cost, Prices
from reprocessing.models import Attempt, Target
from reprocessing.pipeline.maintenance import recover
from reprocessing.pipeline.runs import feed_run, forecast_plan, plan
from reprocessing.pipeline.runs.drain import continue_run, plan_run
from reprocessing.store.runs import run_cost
from reprocessing.store.runs.plans import RunRequest
from tests.reprocessing.pipeline.bench import Workbench
from tests.reprocessing.post import asked as actions_at

pytestmark = pytest.mark.django_db(transaction=True)


def calls(bench: Workbench) -> Counter[str]:
    actions = actions_at(bench.dlq_url) + actions_at(bench.source_url)
    return Counter(action for action in actions if action != "SendMessage")


@pytest.mark.soak
@pytest.mark.parametrize("keyed", [False, True])
def test_a_drain_takes_the_requests_that_its_plan_tells(*, keyed: bool) -> None:
    bench = Workbench(fields={"ordering_key": "attribute:key"} if keyed else {})
    sizes = [200_000 if number % 10 == 0 else 100 for number in range(25)]
    for number, size in enumerate(sizes):
        bench.bury("x" * size, **({"key": str(number % 5)} if keyed else {}))
    before = calls(bench)
    bench.capture()
    captured = calls(bench) - before
    told = pricing.cost_of_capture(25, sum(sizes), receivers=feed_run.receiver_count(25, bench.conf), each=1)
    asked = captured["ReceiveMessage"] + captured["GetQueueAttributes"]
    assert told.least - sum(sizes) // pricing.BYTES_PER_REQUEST <= asked <= told.most
    plan.place_captured(bench.dlq)
    run = plan_run(bench.dlq, RunRequest("run", "anna"))
    outlook = forecast_plan.forecast_run(run, count_lag=0, asks_s3=False)
    continue_run(run, by="anna")
    bench.replay()
    recover.sweep_dlq(bench.dlq, conf=bench.conf)
    drained = calls(bench) - before - captured
    charged = drained["SendMessageBatch"] + sum(size // pricing.BYTES_PER_REQUEST for size in sizes)
    assert outlook.cost.least <= charged + drained["DeleteMessageBatch"] <= outlook.cost.most
    assert set(drained) <= {"SendMessageBatch", "DeleteMessageBatch"}
    spent = run_cost.cost_of_run(run.pk, Prices(standard=1e6))
    assert spent is not None
    assert spent.least <= charged + drained["DeleteMessageBatch"] <= spent.most
    assert spent.least_price == spent.least
    if not keyed:
        assert (drained["SendMessageBatch"], drained["DeleteMessageBatch"]) == (3, 3)


def test_a_run_is_charged_for_each_try_and_for_no_letter_that_did_not_go_to_a_queue() -> None:
    bench = Workbench(fields={"backoff_base": 0, "backoff_jitter": "none"})
    run = bench.enqueue("letter")
    prices = Prices(standard=1e6)
    assert run_cost.cost_of_run(run.pk, prices) == Cost()
    with bench.refusing("letter"):
        bench.replay()
    tries = Attempt.objects.filter(run=run).count()
    refused = run_cost.cost_of_run(run.pk, prices)
    assert tries > 1
    assert refused is not None
    assert (refused.least, refused.most) == (1 + 1, tries + 1)
    assert run_cost.cost_of_run(run.pk, prices, most=tries - 1) is None
    Target.objects.filter(pk=bench.target.pk).update(kind="http", url="https://shop.example.com/hook")
    assert run_cost.cost_of_run(run.pk, prices) == pricing.cost_of_deletes(1, each=1)
