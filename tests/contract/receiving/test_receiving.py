"""Receiving: how many, how long it waits, whom it wakes, and many receivers at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future

import pytest

from tests.contract.conftest import PATIENCE, Advance, Background, MakeQueue
from tests.contract.endpoints import Endpoint
from tests.contract.queues import Boto, Counts, Queue, refused, system

local_only = pytest.mark.parametrize("endpoint", ["local"], indirect=True)
"""For what moto does rightly most of the time: it hands a message to two threads now and then, about one run in six."""


@pytest.fixture
def poll(endpoint: Endpoint, background: Background) -> Iterator[Callable[..., Future[list[str]]]]:
    """Starts a long poll and returns when the endpoint has had time to take it up: two later calls are answered."""
    on_its_way = threading.Event()

    def note(**_: object) -> None:
        on_its_way.set()

    def start(queue: Queue, **rest: Boto) -> Future[list[str]]:
        on_its_way.clear()
        future = background(queue.bodies, **{"WaitTimeSeconds": 20, **rest})
        assert on_its_way.wait(PATIENCE)
        queue.counts()
        queue.counts()
        return future

    endpoint.client.meta.events.register("before-send.sqs.ReceiveMessage", note)
    yield start
    endpoint.client.meta.events.unregister("before-send.sqs.ReceiveMessage", note)


def test_one_message_is_received_unless_more_are_asked_for(queue: Queue) -> None:
    for _ in range(3):
        queue.send("m")
    default = queue.client.receive_message(QueueUrl=queue.url)["Messages"]
    rest = queue.client.receive_message(QueueUrl=queue.url, MaxNumberOfMessages=10)["Messages"]
    assert (len(default), len(rest)) == (1, 2)


def test_never_more_than_asked_for_are_received(queue: Queue) -> None:
    for n in range(12):
        queue.send(str(n))
    received = [queue.bodies(most=most) for most in (3, 7, 10)]
    assert [len(bodies) for bodies in received] == [3, 7, 2]
    assert sorted(int(body) for bodies in received for body in bodies) == list(range(12))


@pytest.mark.parametrize("most", [0, 11])
def test_asking_for_none_or_more_than_ten_is_refused(queue: Queue, most: int) -> None:
    assert refused(queue.receive, most=most) == "InvalidParameterValue"


@pytest.mark.parametrize("seconds", [-1, 21])
def test_a_wait_beyond_its_range_is_refused(queue: Queue, seconds: int) -> None:
    assert refused(queue.receive, WaitTimeSeconds=seconds) == "InvalidParameterValue"


def test_an_empty_answer_has_no_list(queue: Queue) -> None:
    assert "Messages" not in queue.client.receive_message(QueueUrl=queue.url)


def test_a_long_poll_answers_at_once_when_there_is_something(queue: Queue, advance: Advance) -> None:
    queue.send("m")
    started = advance(0)
    assert queue.bodies(WaitTimeSeconds=20) == ["m"]
    assert advance(0) - started < 20


def test_a_long_poll_wakes_when_a_message_is_sent(queue: Queue, poll: Callable[..., Future[list[str]]]) -> None:
    waiting = poll(queue)
    assert not waiting.done()
    queue.send("m")
    assert waiting.result(PATIENCE) == ["m"]


def test_a_long_poll_blocks_nobody_else(
    queue: Queue, make_queue: MakeQueue, poll: Callable[..., Future[list[str]]]
) -> None:
    polled = [make_queue() for _ in range(4)]
    waiting = [poll(empty) for empty in polled]
    queue.send("m")
    queue.delete(queue.receive_one())
    still_waiting = [future.done() for future in waiting]
    for empty in polled:
        empty.send(empty.name)
    assert still_waiting == [False] * 4
    assert [future.result(PATIENCE) for future in waiting] == [[empty.name] for empty in polled]


@pytest.mark.soak
@local_only
def test_receivers_and_senders_at_once_neither_lose_nor_double(queue: Queue, background: Background) -> None:
    expected = [f"{sender}-{n}" for sender in range(4) for n in range(100)]
    got: list[str] = []  # list.append is atomic
    all_there = threading.Event()

    def send(sender: int) -> None:
        for first in range(0, 100, 10):
            queue.send_batch(*({"Id": str(n), "MessageBody": f"{sender}-{n}"} for n in range(first, first + 10)))

    def receive() -> None:
        while not all_there.is_set():
            for message in queue.receive(WaitTimeSeconds=1):
                got.append(message["Body"])
                queue.delete(message)
            if len(got) >= len(expected):
                all_there.set()

    receivers = [background(receive) for _ in range(6)]
    senders = [background(send, sender) for sender in range(4)]
    all_there.wait(3 * PATIENCE)
    all_there.set()
    for worker in receivers + senders:
        worker.result(PATIENCE)
    assert sorted(got) == sorted(expected)
    assert queue.counts() == Counts(0, 0, 0)


@pytest.mark.soak
@local_only
def test_receivers_at_once_keep_the_order_of_every_group(fifo: Queue, background: Background) -> None:
    bodies = [str(n) for n in range(10)]
    for group in "ab":
        fifo.send_batch(
            *(
                {"Id": body, "MessageBody": body, "MessageGroupId": group, "MessageDeduplicationId": group + body}
                for body in bodies
            )
        )
    got: dict[str, list[str]] = {"a": [], "b": []}
    held: set[str] = set()
    overlaps: list[str] = []
    lock = threading.Lock()
    stop = threading.Event()

    def hold(group: str, body: str) -> None:
        with lock:
            if group in held:
                overlaps.append(group)
            held.add(group)
            got[group].append(body)
            if sum(map(len, got.values())) >= 2 * len(bodies):
                stop.set()

    def receive() -> None:
        while not stop.is_set():
            for message in fifo.receive(most=1, WaitTimeSeconds=1):
                group = system(message)["MessageGroupId"]
                hold(group, message["Body"])
                fifo.counts()  # long enough for another receiver to take what it must not
                with lock:
                    held.discard(group)
                fifo.delete(message)

    workers = [background(receive) for _ in range(4)]
    stop.wait(3 * PATIENCE)
    stop.set()
    for worker in workers:
        worker.result(PATIENCE)
    assert (got, overlaps) == ({"a": bodies, "b": bodies}, [])
