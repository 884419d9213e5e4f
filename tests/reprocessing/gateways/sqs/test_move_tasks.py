"""AWS's own redrive, as it is asked for: begun, listed, cancelled; and what its refusals are called."""

from __future__ import annotations

import json

import pytest

from reprocessing.domain.errors import QueueUnreachable
from reprocessing.domain.replay.verdicts import NotSent, Refused
from reprocessing.gateways import aws, sqs
from reprocessing.gateways.sqs import Begun
from tests.contract.endpoints import Endpoint
from tests.reprocessing.gateways.aws_endpoint import MakeQueue

NOWHERE = "arn:aws:sqs:us-east-1:000000000000:nowhere"


def pair(endpoint: Endpoint, make_queue: MakeQueue, messages: int) -> tuple[str, str]:
    """The ARNs of a dlq that holds so many messages, and of its source."""
    dlq = make_queue()
    policy = json.dumps({"deadLetterTargetArn": dlq.arn, "maxReceiveCount": 1})
    source = make_queue(RedrivePolicy=policy)
    for number in range(messages):
        endpoint.client.send_message(QueueUrl=dlq.url, MessageBody=str(number))
    return dlq.arn, source.arn


def test_a_task_is_begun_listed_and_cancelled(endpoint: Endpoint, make_queue: MakeQueue) -> None:
    dlq, source = pair(endpoint, make_queue, 5)
    begun = sqs.begin_move(dlq, to=source, per_second=1)
    assert isinstance(begun, Begun)
    (task,) = sqs.active_moves(dlq)
    assert (task.status, task.handle, task.destination_arn, task.to_move) == ("RUNNING", begun.handle, source, 5)
    assert sqs.cancel_move(dlq, begun.handle) in range(5)
    (task,) = sqs.move_tasks(dlq)
    assert (task.status in {"CANCELLING", "CANCELLED"}, task.handle) == (True, "")


def test_a_second_task_and_a_handle_that_is_none_are_refused(endpoint: Endpoint, make_queue: MakeQueue) -> None:
    dlq, source = pair(endpoint, make_queue, 5)
    sqs.begin_move(dlq, to=source, per_second=1)
    refused = sqs.begin_move(dlq, to=source, per_second=None)
    assert isinstance(refused, Refused)
    assert refused.code == "InvalidParameterValue"
    assert isinstance(sqs.cancel_move(dlq, "garbage"), Refused)


def test_who_does_not_answer_has_begun_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_SQS", "http://127.0.0.1:9")
    aws.forget_clients()
    try:
        assert isinstance(sqs.begin_move(NOWHERE, to="", per_second=None), NotSent)
        with pytest.raises(QueueUnreachable, match="ListMessageMoveTasks failed"):
            sqs.move_tasks(NOWHERE)
    finally:
        aws.forget_clients()
