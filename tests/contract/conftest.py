"""Fixtures of the contract: the endpoint, fresh queues on it, and the lies that moto is allowed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Protocol, TypeAlias, TypeVar
from uuid import uuid4

import pytest
from botocore.exceptions import ClientError

from tests.contract.endpoints import Endpoint, Sandbox, local_endpoint, moto_endpoint
from tests.contract.moto_lies import LIES
from tests.contract.queues import Boto, Queue, redrive_policy

T = TypeVar("T")
Advance: TypeAlias = Callable[[float], float]

PATIENCE = 8.0  # seconds of real time that a condition may take; all of them take milliseconds


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks moto's known lies. Strict: a lie that moto mends fails here and leaves the list."""
    for item in items:
        if not isinstance(item, pytest.Function) or not hasattr(item, "callspec"):
            continue
        if item.callspec.params.get("endpoint") != "moto":
            continue
        reason = _lie(item)
        if reason:
            how_a_lie_shows = (AssertionError, ClientError, KeyError, pytest.fail.Exception)
            item.add_marker(pytest.mark.xfail(strict=True, reason=reason, raises=how_a_lie_shows))


def _lie(item: pytest.Function) -> str:
    """What moto does instead of what the test asks for; empty where it does that."""
    case = "-".join(part for part in item.callspec.id.split("-") if part != "moto")
    for name, reason in LIES.get(item.path.stem, {}).items():
        test, _, cases = name.rstrip("]").partition("[")
        if test in {item.originalname, "*"} and (not cases or case in cases.split("|")):
            return reason
    return ""


@pytest.fixture(scope="session", params=["local", "moto"])
def endpoint(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    """One server of each kind for the whole session; tests keep apart by the names of their queues."""
    started = local_endpoint(tmp_path_factory.mktemp("sqs")) if request.param == "local" else moto_endpoint()
    with started as running:
        yield running


@pytest.fixture
def advance(endpoint: Endpoint) -> Advance:
    """Moves the endpoint's clock by seconds and answers with its time."""
    return endpoint.advance


class MakeQueue(Protocol):
    def __call__(self, *, fifo: bool = False, **attributes: str) -> Queue: ...


@pytest.fixture
def make_queue(endpoint: Endpoint) -> MakeQueue:
    def make(*, fifo: bool = False, **attributes: str) -> Queue:
        name = fresh_name(fifo=fifo)
        if fifo:
            attributes["FifoQueue"] = "true"
        url = endpoint.client.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]  # type: ignore[arg-type]  # tests also set unknown names
        return Queue(endpoint.client, url)

    return make


def fresh_name(*, fifo: bool = False) -> str:
    return f"contract-{uuid4().hex[:16]}{'.fifo' if fifo else ''}"


@pytest.fixture
def queue(make_queue: MakeQueue) -> Queue:
    return make_queue()


@pytest.fixture
def fifo(make_queue: MakeQueue) -> Queue:
    """A FIFO queue with AWS's defaults: explicit deduplication ids, valid for the whole queue."""
    return make_queue(fifo=True)


@pytest.fixture
def by_content(make_queue: MakeQueue) -> Queue:
    return make_queue(fifo=True, ContentBasedDeduplication="true")


class MakePair(Protocol):
    def __call__(self, *, fifo: bool = False, max_receive_count: int = 1, **dlq: str) -> tuple[Queue, Queue]: ...


@pytest.fixture
def make_pair(make_queue: MakeQueue) -> MakePair:
    def make(*, fifo: bool = False, max_receive_count: int = 1, **dlq_attributes: str) -> tuple[Queue, Queue]:
        dlq = make_queue(fifo=fifo, **dlq_attributes)
        return make_queue(fifo=fifo, RedrivePolicy=redrive_policy(dlq, max_receive_count)), dlq

    return make


class Background(Protocol):
    def __call__(self, call: Callable[..., T], *arguments: Boto, **rest: Boto) -> Future[T]: ...


@pytest.fixture
def background() -> Iterator[Background]:
    """Threads for calls that wait; all have ended when the test ends."""
    with ThreadPoolExecutor(max_workers=16) as threads:

        def start(call: Callable[..., T], *arguments: Boto, **rest: Boto) -> Future[T]:
            return threads.submit(call, *arguments, **rest)

        yield start


@pytest.fixture
def until(endpoint: Endpoint) -> Callable[[Callable[[], object]], None]:
    """Lets the endpoint's clock run, second by second, until a condition holds; real time is bounded."""

    def let_pass(condition: Callable[[], object]) -> None:
        never: Future[None] = Future()
        for _ in range(int(PATIENCE / 0.02)):
            if condition():
                return
            endpoint.advance(1)
            wait([never], timeout=0.02)
        pytest.fail(f"the condition did not come true within {PATIENCE:g} s of real time")

    return let_pass


@pytest.fixture
def sandbox(endpoint: Endpoint) -> Iterator[Sandbox]:
    control_interface = Sandbox(endpoint.url)
    control_interface.release()
    yield control_interface
    control_interface.release()
