"""A reset of our own SQS."""

from __future__ import annotations

import pytest

from tests.contract.endpoints import Endpoint, Sandbox, control
from tests.contract.queues import Queue

pytestmark = pytest.mark.parametrize("endpoint", ["local"], indirect=True)


def test_a_reset_forgets_everything(endpoint: Endpoint, sandbox: Sandbox, queue: Queue) -> None:
    queue.send("m")
    sandbox.plan({"kind": "drop", "action": "SendMessage", "queue": None, "times": None})
    control(endpoint.url, "POST", "reset")
    assert sandbox.calls() == []
    assert sandbox.faults() == []
    assert endpoint.client.list_queues().get("QueueUrls", []) == []


def test_a_name_is_free_at_once_after_a_reset(endpoint: Endpoint, queue: Queue) -> None:
    endpoint.client.delete_queue(QueueUrl=queue.url)
    control(endpoint.url, "POST", "reset")
    endpoint.client.create_queue(QueueName=queue.name)
    assert queue.bodies() == []
