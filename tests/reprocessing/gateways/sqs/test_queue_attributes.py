"""What is told of a queue is what SQS says, and a queue that cannot be asked is named with its cure."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from reprocessing.domain.errors import QueueUnreachable
from reprocessing.gateways import sqs
from reprocessing.gateways.sqs import Depth, QueueAddress, QueueFacts, RedriveAllowPolicy, RedrivePolicy
from tests.contract.endpoints import Sandbox
from tests.contract.queues import Queue, bury, redrive_policy
from tests.reprocessing.gateways.aws_endpoint import MakeQueue


def test_a_queue_is_described_with_nothing_set_and_with_everything_set(queue: Queue, make_queue: MakeQueue) -> None:
    plain = QueueFacts(
        arn=queue.arn, fifo=False, visibility=timedelta(seconds=30), retention=timedelta(days=4), delay=timedelta(0),
        redrive=None, redrive_allow=RedriveAllowPolicy("allowAll"), largest=1_048_576, kms_key=None,
        content_based_deduplication=False, deduplication_scope=None, throughput_limit=None,
    )  # fmt: skip
    assert sqs.describe(QueueAddress.of(queue.url)) == plain
    dlq = make_queue(fifo=True)
    full = make_queue(
        fifo=True, VisibilityTimeout="7", MessageRetentionPeriod="3600", DelaySeconds="3", MaximumMessageSize="262144",
        RedrivePolicy=redrive_policy(dlq, "5"), KmsMasterKeyId="alias/letters", ContentBasedDeduplication="true",
        RedriveAllowPolicy=json.dumps({"redrivePermission": "byQueue", "sourceQueueArns": [dlq.arn]}),
        DeduplicationScope="messageGroup", FifoThroughputLimit="perMessageGroupId",
    )  # fmt: skip
    assert sqs.describe(QueueAddress.of(full.url)) == QueueFacts(
        arn=full.arn, fifo=True, visibility=timedelta(seconds=7), retention=timedelta(hours=1),
        delay=timedelta(seconds=3), redrive=RedrivePolicy(dlq.arn, 5),
        redrive_allow=RedriveAllowPolicy("byQueue", (dlq.arn,)), largest=262_144, kms_key="alias/letters",
        content_based_deduplication=True, deduplication_scope="messageGroup", throughput_limit="perMessageGroupId",
    )  # fmt: skip


def test_who_may_name_a_queue_as_its_dead_letter_queue() -> None:
    assert RedriveAllowPolicy("allowAll").allows("arn:a")
    assert not RedriveAllowPolicy("denyAll").allows("arn:a")
    assert RedriveAllowPolicy("byQueue", ("arn:a",)).allows("arn:a")
    assert not RedriveAllowPolicy("byQueue", ("arn:a",)).allows("arn:b")


def test_the_depth_tells_visible_hidden_and_delayed_apart(address: QueueAddress, queue: Queue) -> None:
    for delay in (0, 0, 0, 60):
        queue.send(DelaySeconds=delay)
    sqs.receive(address, wait=0, visibility=30, maximum=1)
    assert sqs.depth(address) == Depth(visible=2, in_flight=1, delayed=1)
    assert sqs.depth(address).total == 4


def test_all_sources_are_found_however_many_pages_they_fill(
    queue: Queue, address: QueueAddress, make_queue: MakeQueue, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reprocessing.gateways.sqs.queue_attributes._PAGE", 2)
    sources = {make_queue(RedrivePolicy=redrive_policy(queue)).url for _ in range(5)}
    assert set(sqs.sources_of(address)) == sources
    assert len(sandbox.calls(action="ListDeadLetterSourceQueues", queue=queue.name)) == 3


def test_the_source_that_a_dead_letter_names_is_located(address: QueueAddress, make_queue: MakeQueue) -> None:
    source = make_queue(RedrivePolicy=redrive_policy(Queue(make_queue().client, address.url)))
    source.send()
    bury(source)
    (dead,) = sqs.receive(address, wait=0, visibility=30)
    assert sqs.locate(dead.system["DeadLetterQueueSourceArn"]) == QueueAddress.of(source.url)


def test_a_missing_right_is_named_with_its_queue(address: QueueAddress, sandbox: Sandbox) -> None:
    sandbox.plan({"kind": "error", "status": 403, "code": "AccessDenied", "message": "no"})
    with pytest.raises(QueueUnreachable) as refused:
        sqs.depth(address)
    assert address.url in str(refused.value)
    assert "Allow sqs:GetQueueAttributes on it" in str(refused.value)
    with pytest.raises(QueueUnreachable, match="sqs:ReceiveMessage"):
        sqs.receive(address, wait=0, visibility=1)
    with pytest.raises(QueueUnreachable, match="sqs:ListDeadLetterSourceQueues"):
        sqs.sources_of(address)
    with pytest.raises(QueueUnreachable, match="sqs:ListMessageMoveTasks"):
        sqs.active_moves("arn:aws:sqs:us-east-1:000000000000:any")


@pytest.mark.parametrize("arn", ["", "orders", "arn:aws:sns:us-east-1:1:orders", "arn:aws:sqs:us-east-1:1:"])
def test_what_is_no_arn_of_a_queue_is_said_to_be_none(arn: str) -> None:
    with pytest.raises(QueueUnreachable, match="not a queue's ARN"):
        sqs.locate(arn)
