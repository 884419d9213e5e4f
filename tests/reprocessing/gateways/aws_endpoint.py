"""A local SQS of these tests' own, so that a fault plan meets nobody else."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from reprocessing.gateways import aws
from reprocessing.gateways.sqs import QueueAddress
from tests.contract.conftest import MakeQueue, fifo, make_queue, queue, sandbox
from tests.contract.endpoints import Endpoint, local_endpoint
from tests.contract.queues import Queue

__all__ = [
    "MakeQueue", "address", "afresh", "endpoint", "fifo", "fifo_address", "make_queue", "own_sqs", "queue", "sandbox",
]  # fmt: skip


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
def address(queue: Queue) -> QueueAddress:
    return QueueAddress.of(queue.url)


@pytest.fixture
def fifo_address(fifo: Queue) -> QueueAddress:
    return QueueAddress.of(fifo.url)
