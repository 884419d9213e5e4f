from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.sandbox.sqs.kept import OPEN
from tests.sandbox.sqs.world import Client, Server, World, running, url_of


@pytest.fixture(autouse=True)
def _close_journals() -> Iterator[None]:
    yield
    while OPEN:
        OPEN.pop().close()


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture(scope="package")
def one_server() -> Iterator[Server]:
    with running() as server:
        yield server


@pytest.fixture
def server(one_server: Server) -> Iterator[Server]:
    with one_server.connect() as client:
        client.control("POST", "reset")
    yield one_server
    with one_server.connect() as client:
        client.control("POST", "reset")


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    with server.connect() as connected:
        yield connected


@pytest.fixture
def url(client: Client) -> str:
    """A standard queue on the server."""
    client.call("CreateQueue", QueueName="q")
    return url_of("q")


@pytest.fixture
def fifo_url(client: Client) -> str:
    client.call("CreateQueue", QueueName="q.fifo", Attributes={"FifoQueue": "true"})
    return url_of("q.fifo")
