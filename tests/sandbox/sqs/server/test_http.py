from __future__ import annotations

import json

import pytest

from redrive_service.sandbox.sqs.server.http_head import LARGEST_BODY
from tests.sandbox.sqs.world import Client, Server, call_bytes, url_of

HEALTH = b"GET /_sandbox/health HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"GARBAGE\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", 400),
        (b"GET / HTTP/2.0\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nno colon here\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\n: no name\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\n folded: x\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: 1e3\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 501),
        (b"POST / HTTP/1.1\r\nX: " + b"x" * 70_000, 431),
    ],
)
def test_what_is_not_http_is_answered_and_the_connection_closed(
    client: Client, request_bytes: bytes, status: int
) -> None:
    client.write(request_bytes)
    answered, body = client.read()
    assert (answered, body["__type"]) == (status, "com.amazonaws.sqs#MalformedHttpRequest")
    assert client.is_closed()


@pytest.mark.parametrize(
    ("action", "body", "status", "shape"),
    [
        ("ListQueues", b"", 400, "SerializationException"),
        ("ListQueues", b"{", 400, "SerializationException"),
        ("ListQueues", b"[]", 400, "SerializationException"),
        ("ListQueues", b"\xff\xfe", 400, "SerializationException"),
        ("ListQueues", b"[" * 100_000, 400, "SerializationException"),
        ("ListQueues", b'{"MaxResults": ' + b"9" * 5000 + b"}", 400, "SerializationException"),
        ("MakeCoffee", b"{}", 400, "UnknownOperationException"),
        ("", b"{}", 400, "UnknownOperationException"),
        ("\xff", b"{}", 400, "UnknownOperationException"),
        ("DeleteQueue", b'{"QueueUrl": "\\ud800"}', 400, "QueueDoesNotExist"),
        ("GetQueueAttributes", b'{"QueueUrl": "\\ud800", "AttributeNames": ["\\ud800"]}', 400, "QueueDoesNotExist"),
    ],
)
def test_what_is_not_a_call_is_refused_and_the_connection_goes_on(
    client: Client, action: str, body: bytes, status: int, shape: str
) -> None:
    head = f"POST / HTTP/1.1\r\nX-Amz-Target: AmazonSQS.{action}\r\nContent-Length: {len(body)}\r\n\r\n"
    client.write(head.encode("latin-1") + body)
    answered, error = client.read()
    assert (answered, error["__type"]) == (status, f"com.amazonaws.sqs#{shape}")
    client.write(HEALTH)
    assert client.read() == (200, {"status": "ok"})


def test_what_no_answer_can_hold_is_replaced_in_the_error(client: Client, url: str) -> None:
    entries = [{"Id": "1", "ReceiptHandle": "\ud800"}]
    (failed,) = client.call("DeleteMessageBatch", QueueUrl=url, Entries=entries)["Failed"]
    assert failed["Message"] == 'The input receipt handle "?" is not a valid receipt handle.'
    client.control("PUT", "faults", [{"kind": "partial", "positions": [0]}])
    entries = [{"Id": "\ud800", "ReceiptHandle": "x"}]
    client.post("DeleteMessageBatch", QueueUrl=url, Entries=entries)
    assert client.read()[0] == 400


def test_other_targets_and_methods_are_refused_like_calls(client: Client) -> None:
    for line in (b"GET / HTTP/1.1", b"DELETE /000000000000/q HTTP/1.1", b"POST /?Action=ListQueues HTTP/1.1"):
        client.write(line + b"\r\nContent-Length: 2\r\n\r\n{}")
        assert client.read()[0] == 400
    client.write(b"GET /_sandbox/nonsense HTTP/1.1\r\n\r\n")
    status, answer = client.read()
    assert (status, answer["error"].startswith("There is no GET /_sandbox/nonsense.")) == (404, True)


@pytest.mark.parametrize("target", [b"/_sandbox/health", b"/_sandbox/nonsense", b"/", b"/_sandbox/calls"])
def test_head_is_answered_like_get_without_a_body(client: Client, target: bytes) -> None:
    answers = []
    for method in (b"HEAD", b"GET"):
        client.write(method + b" " + target + b" HTTP/1.1\r\n\r\n" + HEALTH)
        answers.append(b"")
        while not answers[-1].endswith(b'{"status":"ok"}'):
            answers[-1] += client.socket.recv(65_536)
    assert answers[0].split()[1] == answers[1].split()[1]
    assert answers[0].count(b"\r\n\r\n") == 2
    assert answers[0].split(b"\r\n\r\n")[1].startswith(b"HTTP/1.1 200 OK\r\n")


@pytest.mark.parametrize("size", [65_537, 1_000_000, 7_000_000])
def test_a_head_that_is_too_large_gets_its_answer(client: Client, size: int) -> None:
    client.write(b"POST / HTTP/1.1\r\nX: " + b"x" * size)
    status, error = client.read()
    assert (status, error["__type"]) == (431, "com.amazonaws.sqs#MalformedHttpRequest")
    assert client.is_closed()


def test_bytes_may_arrive_one_by_one(client: Client) -> None:
    for byte in call_bytes("CreateQueue", {"QueueName": "q"}):
        client.write(bytes([byte]))
    assert client.read() == (200, {"QueueUrl": url_of("q")})


@pytest.mark.soak
def test_pipelined_calls_are_answered_in_order(client: Client) -> None:
    calls = [("CreateQueue", {"QueueName": "q"}), ("ReceiveMessage", {"QueueUrl": url_of("q"), "WaitTimeSeconds": 1})]
    calls += [("SendMessage", {"QueueUrl": url_of("q"), "MessageBody": str(n)}) for n in range(20)]
    client.write(b"".join(call_bytes(action, parameters) for action, parameters in calls))
    answers = [client.read()[1] for _ in calls]
    assert (answers[0], answers[1]) == ({"QueueUrl": url_of("q")}, {})
    assert all("MessageId" in answer for answer in answers[2:])


def test_a_client_that_asks_first_is_encouraged(client: Client) -> None:
    whole = call_bytes("CreateQueue", {"QueueName": "q"})
    head, _, body = whole.partition(b"\r\n\r\n")
    client.write(head + b"\r\nExpect: 100-continue\r\n\r\n")
    assert client.socket.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
    client.write(body)
    assert client.read() == (200, {"QueueUrl": url_of("q")})


def test_a_request_that_is_too_large_is_refused_and_the_connection_goes_on(client: Client) -> None:
    body = b'"' + b"x" * 3 * LARGEST_BODY + b'"'
    client.write(b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    status, error = client.read()
    assert (status, error["__type"]) == (413, "com.amazonaws.sqs#MalformedHttpRequest")
    client.write(HEALTH)
    assert client.read() == (200, {"status": "ok"})


def test_the_largest_batch_fits_however_it_is_escaped(client: Client, url: str) -> None:
    body = "é" * 52_428
    entries = [{"Id": str(n), "MessageBody": body} for n in range(10)]
    answer = client.call("SendMessageBatch", QueueUrl=url, Entries=entries)
    assert len(answer["Successful"]) == 10
    received = client.call("ReceiveMessage", QueueUrl=url, MaxNumberOfMessages=10)
    assert [message["Body"] for message in received["Messages"]] == [body] * 10


@pytest.mark.parametrize("head", [b"HTTP/1.1\r\nConnection: close", b"HTTP/1.0"])
def test_a_client_that_wants_no_more_is_let_go(client: Client, head: bytes) -> None:
    client.write(b"GET /_sandbox/health " + head + b"\r\n\r\n")
    assert client.read() == (200, {"status": "ok"})
    assert client.is_closed()


def test_errors_name_their_code_for_query_compatible_clients(client: Client) -> None:
    client.post("DeleteQueue", QueueUrl=url_of("missing"))
    answer = client.socket.recv(10_000).decode()
    head, _, body = answer.partition("\r\n\r\n")
    lines = head.split("\r\n")
    assert "x-amzn-query-error: AWS.SimpleQueueService.NonExistentQueue;Sender" in lines
    number = client.control("GET", "calls")["calls"][-1]["n"]
    assert f"x-amzn-requestid: 00000000-0000-4000-8000-{number:012x}" in lines
    assert json.loads(body) == {
        "__type": "com.amazonaws.sqs#QueueDoesNotExist",
        "message": "The specified queue does not exist.",
    }


def test_queue_urls_begin_with_the_address_the_client_used(client: Client) -> None:
    client.write(call_bytes("CreateQueue", {"QueueName": "q"}).replace(b"Host: local", b"Host: sqs.test:81"))
    assert client.read()[1] == {"QueueUrl": "http://sqs.test:81/000000000000/q"}


def test_a_client_that_leaves_in_the_middle_disturbs_nobody(server: Server, client: Client) -> None:
    for part in (HEALTH[:10], call_bytes("CreateQueue", {"QueueName": "q"})[:-5]):
        with server.connect() as leaver:
            leaver.write(part)
    client.write(HEALTH)
    assert client.read() == (200, {"status": "ok"})
