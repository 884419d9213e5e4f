"""Rights are asked for so that nothing can happen; and what time SQS has is in its answers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from reprocessing.domain.errors import QueueUnreachable
from reprocessing.gateways import aws
from reprocessing.gateways.sqs import QueueAddress
from reprocessing.gateways.sqs.permission_probe import PROBES, clock, denied
from tests.contract.endpoints import Sandbox, control, moto_endpoint
from tests.contract.queues import Queue


def test_where_nothing_is_refused_no_right_is_lacking_and_nothing_is_done(
    queue: Queue, address: QueueAddress, sandbox: Sandbox
) -> None:
    queue.send()
    control(sandbox.url, "DELETE", "calls")
    assert denied(address, PROBES) == []
    calls = control(sandbox.url, "GET", "calls?since=0")["calls"]
    assert [(one["action"], one["status"] // 100) for one in calls if one["queue"] == queue.name] == [
        ("ReceiveMessage", 4),
        ("DeleteMessageBatch", 4),
        ("ChangeMessageVisibilityBatch", 4),
        ("SendMessageBatch", 4),
    ]
    assert queue.receive_one()["Attributes"]["ApproximateReceiveCount"] == "1"


@pytest.mark.parametrize(
    ("action", "right"),
    [
        ("ReceiveMessage", "sqs:ReceiveMessage"),
        ("DeleteMessageBatch", "sqs:DeleteMessage"),
        ("ChangeMessageVisibilityBatch", "sqs:ChangeMessageVisibility"),
        ("SendMessageBatch", "sqs:SendMessage"),
    ],
)
def test_the_right_that_is_refused_is_named(address: QueueAddress, sandbox: Sandbox, action: str, right: str) -> None:
    sandbox.plan({"kind": "error", "action": action, "status": 403, "code": "AccessDeniedException", "message": "no"})
    assert denied(address, PROBES) == [right]


def test_a_queue_that_does_not_answer_is_out_of_reach(address: QueueAddress, sandbox: Sandbox) -> None:
    sandbox.plan({"kind": "drop", "action": "ReceiveMessage"})
    with pytest.raises(QueueUnreachable, match="ReceiveMessage failed"):
        denied(address, PROBES)


def test_an_answer_without_a_date_tells_no_time(address: QueueAddress) -> None:
    assert clock(address) is None


@pytest.mark.soak
def test_the_date_of_an_answer_is_sqs_s_clock() -> None:
    with moto_endpoint() as moto, pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL_SQS", moto.url)
        aws.forget_clients()
        url = moto.client.create_queue(QueueName="q")["QueueUrl"]
        before = datetime.fromtimestamp(int(moto.advance(0)), UTC)
        said = clock(QueueAddress(url, "us-east-1"))
    aws.forget_clients()
    assert said is not None
    assert before <= said <= before + timedelta(seconds=60)
