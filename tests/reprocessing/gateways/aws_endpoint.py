"""A local SQS of these tests' own, so that a fault plan meets nobody else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol
from uuid import uuid4

import pytest

from reprocessing.gateways import aws
from reprocessing.gateways.sqs import QueueAddress
from tests.contract.endpoints import Endpoint, Sandbox, local_endpoint
from tests.contract.queues import Queue


@pytest.fixture(scope="session")
def own_sqs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    with local_endpoint(tmp_path_factory.mktemp("sqs")) as running:
        yield running


@pytest.fixture(autouse=True, scope="module")
def endpoint(own_sqs: Endpoint) -> Iterator[Endpoint]:
    """The endpoint that the package speaks to."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL_SQS", own_sqs.url)
        aws.forget_clients()
        yield own_sqs
    aws.forget_clients()


@pytest.fixture
def afresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """A monkeypatch for what clients are made from: after `aws.forget()` it counts, after the test it is undone."""
    yield monkeypatch
    monkeypatch.undo()
    aws.forget_clients()


@pytest.fixture
def sandbox(endpoint: Endpoint) -> Iterator[Sandbox]:
    """The control interface, with no fault planned before and after."""
    control_interface = Sandbox(endpoint.url)
    control_interface.release()
    yield control_interface
    control_interface.release()


class MakeQueue(Protocol):
    def __call__(self, *, fifo: bool = False, **attributes: str) -> Queue: ...


@pytest.fixture
def make_queue(endpoint: Endpoint) -> MakeQueue:
    def make(*, fifo: bool = False, **attributes: str) -> Queue:
        name = f"sqs-{uuid4().hex[:16]}{'.fifo' if fifo else ''}"
        if fifo:
            attributes["FifoQueue"] = "true"
        url = endpoint.client.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]  # type: ignore[arg-type]  # a plain dict of texts
        return Queue(endpoint.client, url)

    return make


@pytest.fixture
def queue(make_queue: MakeQueue) -> Queue:
    return make_queue()


@pytest.fixture
def fifo(make_queue: MakeQueue) -> Queue:
    return make_queue(fifo=True)


@pytest.fixture
def address(queue: Queue) -> QueueAddress:
    return QueueAddress.of(queue.url)


@pytest.fixture
def fifo_address(fifo: Queue) -> QueueAddress:
    return QueueAddress.of(fifo.url)
