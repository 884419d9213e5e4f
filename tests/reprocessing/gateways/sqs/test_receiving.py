"""A receive hands over what there is, once, and says when it cannot know."""

from __future__ import annotations

import pytest

from reprocessing.domain.errors import QueueUnreachable
from reprocessing.gateways import aws, sqs
from reprocessing.gateways.sqs import QueueAddress
from tests.contract.endpoints import Endpoint, Sandbox
from tests.contract.queues import Queue
from tests.reprocessing.gateways.letters import letter, send


def test_no_more_are_handed_over_than_were_asked_for(address: QueueAddress, queue: Queue) -> None:
    for _ in range(3):
        queue.send()
    assert len(sqs.receive(address, wait=0, visibility=30, maximum=2)) == 2
    assert len(sqs.receive(address, wait=0, visibility=30)) == 1
    assert sqs.receive(address, wait=0, visibility=30) == []


def test_what_sqs_knows_of_a_message_comes_with_it(fifo_address: QueueAddress, fifo: Queue, endpoint: Endpoint) -> None:
    fifo.send("m", MessageGroupId="a", MessageDeduplicationId="d")
    (one,) = sqs.receive(fifo_address, wait=0, visibility=30)
    said = {name: one.system[name] for name in ("ApproximateReceiveCount", "MessageGroupId", "MessageDeduplicationId")}
    assert said == {"ApproximateReceiveCount": "1", "MessageGroupId": "a", "MessageDeduplicationId": "d"}
    assert {"SentTimestamp", "SequenceNumber", "ApproximateFirstReceiveTimestamp"} <= set(one.system)


def test_the_same_attempt_id_gets_the_same_messages_again(fifo_address: QueueAddress) -> None:
    send(fifo_address, letter(1, group="a"), letter(2, group="b"))
    first = sqs.receive(fifo_address, wait=0, visibility=30, attempt_id="once")
    again = sqs.receive(fifo_address, wait=0, visibility=30, attempt_id="once")
    assert sorted(one.body for one in first) == sorted(one.body for one in again) == [b"1", b"2"]


def test_a_standard_queue_is_asked_without_an_attempt_id(address: QueueAddress) -> None:
    assert sqs.receive(address, wait=0, visibility=30, attempt_id="once") == []


@pytest.mark.soak
def test_a_long_poll_outlasts_the_read_timeout_of_other_calls(
    address: QueueAddress, afresh: pytest.MonkeyPatch
) -> None:
    afresh.setattr("reprocessing.gateways.aws.clients.READ_SECONDS", 0.6)
    aws.forget_clients()
    assert sqs.receive(address, wait=1, visibility=30) == []


def test_a_failed_receive_is_told_and_not_tried_again(address: QueueAddress, queue: Queue, sandbox: Sandbox) -> None:
    sandbox.plan({"kind": "error", "action": "ReceiveMessage", "status": 500, "code": "InternalError"})
    with pytest.raises(QueueUnreachable, match="ReceiveMessage failed: InternalError"):
        sqs.receive(address, wait=0, visibility=30)
    assert len(sandbox.calls(action="ReceiveMessage", queue=queue.name)) == 1


def test_a_body_with_a_lone_surrogate_is_bytes_like_any_other(
    address: QueueAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Client:
        @staticmethod
        def receive_message(**_: object) -> dict[str, object]:
            return {"Messages": [{"MessageId": "m", "ReceiptHandle": "h", "Body": "\ud800"}]}

    monkeypatch.setattr("reprocessing.gateways.sqs.receiving.client", lambda region, role, wait: Client())
    (one,) = sqs.receive(address, wait=0, visibility=30)
    assert one.body == b"\xed\xa0\x80"
