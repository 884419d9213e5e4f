from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import closing, contextmanager
from random import Random

import pytest

from redrive_service.sandbox.sqs.call_log.calls import CallLog
from redrive_service.sandbox.sqs.core import LocalSqs
from redrive_service.sandbox.sqs.server.clock import Clock
from redrive_service.sandbox.sqs.server.exchange import Exchange
from redrive_service.sandbox.sqs.server.routes import connect
from redrive_service.sandbox.sqs.server.server import SqsServer
from redrive_service.sandbox.sqs.server.waiting_receives import WaitingReceives
from tests.sandbox.sqs.world import Client, Server, arn, url_of


@contextmanager
def waiting(server: Server, url: str) -> Iterator[Client]:
    """A client that waits for a message."""
    with server.connect() as client:
        client.post("ReceiveMessage", QueueUrl=url, WaitTimeSeconds=20)
        assert client.is_silent(0.1)
        yield client


def body_of(answer: tuple[int, dict[str, list[dict[str, str]]]]) -> list[str]:
    return [message["Body"] for message in answer[1].get("Messages", [])]


def test_a_send_wakes_the_first_who_waits_and_only_that_one(server: Server, client: Client, url: str) -> None:
    with server.connect() as first, server.connect() as second:
        first.post("ReceiveMessage", QueueUrl=url, WaitTimeSeconds=20)
        assert first.is_silent(0.1)
        second.post("ReceiveMessage", QueueUrl=url, WaitTimeSeconds=20)
        assert second.is_silent(0.1)
        client.call("SendMessage", QueueUrl=url, MessageBody="x")
        assert body_of(first.read()) == ["x"]
        assert second.is_silent(0.1)


def test_a_client_that_went_away_takes_no_message(server: Server, client: Client, url: str) -> None:
    with waiting(server, url):
        pass
    client.call("SendMessage", QueueUrl=url, MessageBody="x")
    (message,) = client.call("ReceiveMessage", QueueUrl=url, AttributeNames=["All"])["Messages"]
    assert message["Attributes"]["ApproximateReceiveCount"] == "1"


def test_a_client_that_leaves_in_the_same_instant_takes_no_message(server: Server, client: Client, url: str) -> None:
    leaver = server.connect()
    leaver.post("ReceiveMessage", QueueUrl=url, WaitTimeSeconds=20)
    assert leaver.is_silent(0.1)
    server.process.send_signal(signal.SIGSTOP)
    try:  # both are there when the server looks again, the send first
        client.post("SendMessage", QueueUrl=url, MessageBody="x")
        leaver.socket.close()
    finally:
        server.process.send_signal(signal.SIGCONT)
    assert "MessageId" in client.read()[1]
    assert body_of((200, client.call("ReceiveMessage", QueueUrl=url))) == ["x"]


def test_a_wait_that_is_over_answers_nothing(server: Server, client: Client, url: str) -> None:
    with waiting(server, url) as waiter:
        client.control("POST", "clock", {"advance": 20})
        assert waiter.read() == (200, {})


@pytest.mark.soak
def test_a_wait_ends_by_itself(client: Client, url: str) -> None:
    client.post("ReceiveMessage", QueueUrl=url, WaitTimeSeconds=1)
    assert client.is_silent(0.1)
    assert client.read() == (200, {})


def test_the_queues_own_wait_counts_where_none_is_asked_for(server: Server, client: Client, url: str) -> None:
    client.call("SetQueueAttributes", QueueUrl=url, Attributes={"ReceiveMessageWaitTimeSeconds": "20"})
    assert client.call("ReceiveMessage", QueueUrl=url, WaitTimeSeconds=0) == {}
    with server.connect() as waiter:
        waiter.post("ReceiveMessage", QueueUrl=url)
        assert waiter.is_silent(0.1)
        client.call("SendMessage", QueueUrl=url, MessageBody="x")
        assert body_of(waiter.read()) == ["x"]


@pytest.mark.soak
@pytest.mark.parametrize("cause", ["visibility", "expiry", "delay", "real expiry"])
def test_what_becomes_visible_wakes_a_receive(server: Server, client: Client, url: str, cause: str) -> None:
    if cause == "delay":
        client.call("SendMessage", QueueUrl=url, MessageBody="x", DelaySeconds=10)
    else:
        client.call("SendMessage", QueueUrl=url, MessageBody="x")
    hidden = 1 if cause == "real expiry" else 10
    received = client.call("ReceiveMessage", QueueUrl=url, VisibilityTimeout=hidden).get("Messages", [])
    with waiting(server, url) as waiter:
        if cause == "visibility":
            handle = received[0]["ReceiptHandle"]
            client.call("ChangeMessageVisibility", QueueUrl=url, ReceiptHandle=handle, VisibilityTimeout=0)
        elif cause != "real expiry":
            client.control("POST", "clock", {"advance": 10})
        assert body_of(waiter.read()) == ["x"]


def test_a_freed_group_wakes_a_receive(server: Server, client: Client, fifo_url: str) -> None:
    for body in ("1", "2"):
        client.call("SendMessage", QueueUrl=fifo_url, MessageBody=body, MessageGroupId="g", MessageDeduplicationId=body)
    (first,) = client.call("ReceiveMessage", QueueUrl=fifo_url)["Messages"]
    with waiting(server, fifo_url) as waiter:
        client.call("DeleteMessage", QueueUrl=fifo_url, ReceiptHandle=first["ReceiptHandle"])
        assert body_of(waiter.read()) == ["2"]


def test_a_dead_letter_wakes_a_receive_of_its_dead_letter_queue(server: Server, client: Client, url: str) -> None:
    policy = json.dumps({"deadLetterTargetArn": arn("q"), "maxReceiveCount": 1})
    client.call("CreateQueue", QueueName="source", Attributes={"RedrivePolicy": policy, "VisibilityTimeout": "0"})
    client.call("SendMessage", QueueUrl=url_of("source"), MessageBody="x")
    client.call("ReceiveMessage", QueueUrl=url_of("source"))
    with waiting(server, url) as waiter:
        assert client.call("ReceiveMessage", QueueUrl=url_of("source")) == {}
        assert body_of(waiter.read()) == ["x"]


def test_a_moved_message_wakes_a_receive(server: Server, client: Client, url: str) -> None:
    policy = json.dumps({"deadLetterTargetArn": arn("dlq"), "maxReceiveCount": 1})
    client.call("CreateQueue", QueueName="dlq")
    client.call("SetQueueAttributes", QueueUrl=url, Attributes={"RedrivePolicy": policy})
    client.call("SendMessage", QueueUrl=url_of("dlq"), MessageBody="x")
    with waiting(server, url) as waiter:
        client.call("StartMessageMoveTask", SourceArn=arn("dlq"), DestinationArn=arn("q"))
        assert body_of(waiter.read()) == ["x"]


@pytest.mark.parametrize("end", ["delete", "reset"])
def test_a_queue_that_goes_away_ends_the_wait(server: Server, client: Client, url: str, end: str) -> None:
    with waiting(server, url) as waiter:
        if end == "delete":
            client.call("DeleteQueue", QueueUrl=url)
        else:
            client.control("POST", "reset")
        assert waiter.read()[1]["__type"] == "com.amazonaws.sqs#QueueDoesNotExist"


def test_the_clock_does_not_go_back(client: Client) -> None:
    client.post_control("POST", "clock", {"advance": -1})
    sentence = 'Send {"advance": seconds}, with seconds from 0 to 3153600000 (100 years): the clock never goes back.'
    assert client.read() == (400, {"error": sentence})
    before = client.control("POST", "clock", {"advance": 0})["now"]
    assert client.control("POST", "clock", {"advance": 100})["now"] >= before + 100


@pytest.mark.parametrize("advance", ["1e308", "3153600000.1", "true", '"1"', "null", "1" + "0" * 400])
def test_the_clock_goes_no_further_than_a_hundred_years_at_a_time(client: Client, advance: str) -> None:
    body = f'{{"advance": {advance}}}'
    before = client.control("POST", "clock", {"advance": 0})["now"]
    client.write(f"POST /_sandbox/clock HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
    status, answer = client.read()
    assert (status, list(answer)) == (400, ["error"])
    assert client.control("POST", "clock", {"advance": 0})["now"] < before + 1_000


@pytest.mark.parametrize("advance", ["NaN", "Infinity", "1e400"])
def test_the_clock_takes_no_number_that_is_none(client: Client, advance: str) -> None:
    body = f'{{"advance": {advance}}}'
    client.write(f"POST /_sandbox/clock HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
    assert client.read() == (400, {"error": "The body is not JSON; JSON has no NaN and no Infinity either."})


def test_a_room_is_empty_when_everybody_has_left() -> None:
    room = WaitingReceives()
    with closing(CallLog()) as calls:
        connection = connect(SqsServer(LocalSqs(Random(1)), Clock(lambda: 0.0), calls))
    exchange = Exchange(connection=connection, action="ReceiveMessage", address="", body=b"{}")
    for deadline in (1.0, 2.0, 3.0):
        room.enter(exchange, "q", deadline)
    first = room.first("q")
    assert first is not None
    room.leave(first)
    room.leave(first)
    assert [waiter.deadline for waiter in room.everybody()] == [2.0, 3.0]
    assert [waiter.deadline for waiter in room.overdue(2.5)] == [2.0]
    assert bool(room)
    assert [waiter.deadline for waiter in room.overdue(3.0)] == [3.0]
    assert not room
    assert room.first("q") is None
