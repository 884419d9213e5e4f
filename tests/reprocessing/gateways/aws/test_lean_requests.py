"""Lean requests are botocore's own requests, and their answers are read as botocore reads them."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
from botocore import UNSIGNED
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders

from reprocessing.gateways.aws.lean_requests import ACTIONS
from tests.contract.endpoints import Endpoint
from tests.contract.queues import Queue
from tests.reprocessing.gateways.aws.sqs_wire import (
    CALLS,
    PLAIN,
    URL,
    Request,
    Sqs,
    call,
    outcome,
    said,
    sqs_client,
)
from tests.reprocessing.web_servers import serving, status

#: They differ from request to request. botocore adds the first two for its retries, and signs everything else.
OF_RETRIES = {"amz-sdk-invocation-id", "amz-sdk-request"}
CHANGING = {*OF_RETRIES, "X-Amz-Date", "Authorization", "Content-Length"}
TEXT, BYTES = {"DataType": "String", "StringValue": "Zürich"}, {"DataType": "Binary", "BinaryValue": "AP8="}
MESSAGE = {"MessageId": "m", "Body": "b", "MessageAttributes": {"text": TEXT, "bytes": BYTES}}
REFUSED = b'{"__type": "com.amazonaws.sqs#QueueDoesNotExist", "message": "no such queue"}'
QUERY_ERROR = "x-amzn-query-error: AWS.SimpleQueueService.NonExistentQueue;Sender"
BODY = json.dumps({"Messages": [MESSAGE]}).encode()


def test_every_frequent_action_has_a_case() -> None:
    assert {name.title().replace("_", "") for name in CALLS} == set(ACTIONS)


def made(action: str, *, lean: bool, answer: bytes = PLAIN) -> Request:
    """The second request, as it is on the wire; the first one is botocore's."""
    sqs = Sqs([answer] * 2)
    with serving(sqs.script) as server:
        client = sqs_client(f"http://localhost:{server.port}", lean=lean)
        for _ in range(2):
            call(client, action)
        client.close()
    assert [request.is_lean for request in sqs.requests] == [False, lean]
    return sqs.requests[1]


def signed_headers(request: Request) -> list[str]:
    return dict(request.headers)["Authorization"].split("SignedHeaders=")[1].split(",")[0].split(";")


@pytest.mark.parametrize("action", CALLS)
def test_a_lean_request_is_the_same_to_the_byte_but_for_the_spaces_of_its_json(action: str) -> None:
    usual, lean = (made(action, lean=lean) for lean in (False, True))
    same = [
        [
            request.line,
            [(name, value) for name, value in request.headers if name not in CHANGING | {"Host"}],
            [name for name, _ in request.headers if name not in OF_RETRIES],
            [name for name in signed_headers(request) if name not in OF_RETRIES],
            json.loads(request.body),
        ]
        for request in (usual, lean)
    ]  # fmt: skip
    assert same[0] == same[1]
    assert int(dict(lean.headers)["Content-Length"]) == len(lean.body) < len(usual.body)


#: An answer as it is on the wire, and whether the server hangs up after it.
ANSWERS: dict[str, tuple[bytes, bool]] = {
    "messages": (status(200, body=BODY), False),
    "nothing": (PLAIN, False),
    "no messages": (said({"Messages": None}), False),
    "nulls": (said({"Messages": [{"MessageId": "m", "Attributes": None, "MessageAttributes": None}]}), False),
    "half a surrogate pair": (status(200, body=b'{"Messages": [{"MessageId": "m", "Body": "\\ud800"}]}'), False),
    "a large answer": (said({"Messages": [{**MESSAGE, "Body": "x" * 300_000}]}), False),
    "other letters in the head": (
        b"HTTP/1.1 200 \r\nCONTENT-LENGTH:%d\r\nConnection: Keep-Alive\r\n\r\n%b" % (len(BODY), BODY), False
    ),
    "chunks": (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY), False
    ),
    "chunks and a length": (
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n"
        % (len(BODY), BODY), False,
    ),
    "first a 100": (b"HTTP/1.1 100 Continue\r\n\r\n" + status(200, body=BODY), False),
    "the last of its connection": (status(200, "Connection: close", body=BODY), True),
    "of HTTP/1.0": (b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(BODY), BODY), True),
    "without a length": (b"HTTP/1.1 200 OK\r\n\r\n" + BODY, True),
    "without carriage returns": (b"HTTP/1.1 200 OK\nContent-Length: %d\n\n%b" % (len(BODY), BODY), False),
    "a length that is no number": (b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n" + BODY, True),
    "an absurd length": (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n" + BODY, True),
    "no reason": (b"HTTP/1.1 200\r\nContent-Length: 2\r\n\r\n{}", False),
    "a long head": (status(200, f"x-long: {'x' * 60_000}", f"x-longer: {'x' * 60_000}", body=BODY), False),
    "too long a line": (status(200, f"x-long: {'x' * 70_000}", body=BODY), True),
    "too many headers": (status(200, *(f"x-{number}: x" for number in range(200)), body=BODY), True),
    "cut off in the body": (status(200, body=BODY)[:-20], True),
    "cut off in the head": (status(200, body=BODY)[:30], True),
    "nothing at all": (b"", True),
    "no HTTP": (b"220 mail.test ready\r\n", True),
    "a page of a proxy": (status(200, body=b"<html>a proxy</html>"), False),
    "compressed": (status(200, "Content-Encoding: gzip", body=b"\x1f\x8b no gzip"), False),
    "an empty body": (status(200, body=b""), False),
    "204": (status(204, body=b""), False),
    "a redirect": (status(307, "Location: http://127.0.0.1:9/", body=b""), False),
    "an error": (status(400, QUERY_ERROR, body=REFUSED), False),
    "an error that is not modelled": (status(403, body=b'{"__type": "ExpiredToken", "message": "renew"}'), False),
    "an error of a server": (status(500, QUERY_ERROR, body=REFUSED), False),
    "throttled": (status(400, body=b'{"__type": "RequestThrottled"}'), False),
    "a page instead of an error": (status(503, "Retry-After: 1", body=b"<html>later</html>"), False),
    "an error without a body": (status(500, body=b""), False),
    "an error in chunks": (
        b"HTTP/1.1 400 Bad\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(REFUSED), REFUSED), False
    ),
}  # fmt: skip


@pytest.mark.parametrize("answer", ANSWERS)
def test_an_answer_is_read_as_botocore_reads_it_and_no_request_is_sent_again(answer: str) -> None:
    raw, hangs_up = ANSWERS[answer]
    found = []
    for lean in (False, True):
        sqs = Sqs([PLAIN, raw, said({"Messages": [MESSAGE]})], frozenset({1} if hangs_up else ()))
        with serving(sqs.script) as server:
            client = sqs_client(f"http://localhost:{server.port}", lean=lean)
            outcomes = [outcome(partial(call, client)) for _ in range(3)]
            client.close()
        assert [request.is_lean for request in sqs.requests] == [False, lean, lean]
        found.append((outcomes, [request.connection for request in sqs.requests]))
    assert found[0] == found[1]


@pytest.mark.soak
def test_an_error_has_the_code_of_the_query_protocol() -> None:
    sqs = Sqs([PLAIN, ANSWERS["an error"][0]])
    with serving(sqs.script) as server:
        client = sqs_client(f"http://localhost:{server.port}", lean=True)
        call(client)
        with pytest.raises(client.exceptions.QueueDoesNotExist) as caught:
            call(client)
        client.close()
    assert caught.value.response["Error"] == {
        "Code": "AWS.SimpleQueueService.NonExistentQueue", "Message": "no such queue",
        "QueryErrorCode": "QueueDoesNotExist", "Type": "Sender",
    }  # fmt: skip


def test_a_text_with_half_a_surrogate_pair_is_sent_by_botocore() -> None:
    sqs = Sqs([PLAIN] * 3)
    with serving(sqs.script) as server:
        client = sqs_client(f"http://localhost:{server.port}", lean=True)
        for text in ("whole", "\ud800", "whole"):
            client.send_message_batch(QueueUrl=URL, Entries=[{"Id": "0", "MessageBody": text}])
        client.close()
    assert [request.is_lean for request in sqs.requests] == [False, False, True]
    assert b'"\\ud800"' in sqs.requests[1].body


def add_a_header(client: Any) -> None:  # noqa: ANN401 - boto3's
    client.meta.events.register("request-created.sqs", lambda request, **_: request.headers.add_header("x-own", "1"))


@pytest.mark.parametrize(
    "options", [{"prepare": add_a_header}, {"signature_version": UNSIGNED}], ids=["a header is added", "unsigned"]
)
def test_a_client_whose_requests_are_not_known_here_is_left_to_botocore(options: dict[str, Any]) -> None:
    sqs = Sqs([PLAIN] * 3)
    with serving(sqs.script) as server:
        client = sqs_client(f"http://localhost:{server.port}", lean=True, **options)
        for _ in range(3):
            call(client)
        client.close()
    assert [request.is_lean for request in sqs.requests] == [False] * 3
    assert {("x-own", "1") in request.headers for request in sqs.requests} == {"prepare" in options}


@pytest.mark.parametrize("event", ["before-parameter-build.sqs", "request-created", "after-call.sqs.ReceiveMessage"])
def test_from_when_a_handler_is_registered_botocore_makes_the_requests(event: str) -> None:
    sqs, heard = Sqs([PLAIN] * 3), list[str]()
    with serving(sqs.script) as server:
        client = sqs_client(f"http://localhost:{server.port}", lean=True)
        for _ in range(2):
            call(client)
        client.meta.events.register(event, lambda event_name, **_: heard.append(event_name))
        call(client)
        client.close()
    assert [request.is_lean for request in sqs.requests] == [False, True, False]
    assert len(heard) == 1


def test_a_handler_of_before_send_may_answer_in_place_of_sqs() -> None:
    """Moto does so."""
    asked = list[dict[str, str]]()

    def answer(request: Any, **_: object) -> AWSResponse:  # noqa: ANN401 - as above
        asked.append(dict(request.headers.items()))
        raw: Any = type("Raw", (), {"stream": lambda _: [BODY]})()
        return AWSResponse(request.url, 200, HTTPHeaders(), raw)

    client = sqs_client(
        "http://127.0.0.1:9", lean=True, prepare=lambda made: made.meta.events.register("before-send", answer)
    )
    assert call(client) == call(client)
    assert ["amz-sdk-request" in headers for headers in asked] == [True, False]


@pytest.fixture
def queues(endpoint: Endpoint, queue: Queue) -> Iterator[list[Any]]:
    """Two clients of the local SQS."""
    clients = [sqs_client(endpoint.url, lean=lean) for lean in (False, True)]
    for client in clients:
        for action in CALLS:
            outcome(partial(call, client, action, queue.url))
    yield clients
    for client in clients:
        client.close()


@pytest.mark.soak
def test_both_get_the_same_answers_from_the_local_sqs(queues: list[Any], queue: Queue) -> None:
    found = []
    for client in queues:
        entries = [{"Id": str(number), "MessageBody": f"{number} é\u2028"} for number in range(9)]
        entries.append({**CALLS["send_message_batch"]["Entries"][0], "Id": "bytes"})
        sent = client.send_message_batch(QueueUrl=queue.url, Entries=entries)
        names = {"MessageAttributeNames": ["All"], "MessageSystemAttributeNames": ["All"]}
        got = client.receive_message(QueueUrl=queue.url, MaxNumberOfMessages=10, **names)
        handles = [
            {"Id": str(number), "ReceiptHandle": message["ReceiptHandle"]}
            for number, message in enumerate(got["Messages"])
        ]
        hidden = [
            {**handle, "VisibilityTimeout": 30} for handle in [*handles[1:], {**handles[0], "ReceiptHandle": "no"}]
        ]
        extended = client.change_message_visibility_batch(QueueUrl=queue.url, Entries=hidden)
        deleted = client.delete_message_batch(QueueUrl=queue.url, Entries=handles)
        found.append([without_ids(answer) for answer in (sent, got, extended, deleted)])
    assert found[0] == found[1]
    assert len(found[1][1]["Messages"]) == 10


def without_ids(answer: Any) -> Any:  # noqa: ANN401 - JSON
    """An answer without what differs between two that are the same."""
    if isinstance(answer, dict):
        own = {"ResponseMetadata", "MessageId", "ReceiptHandle", "SentTimestamp", "ApproximateFirstReceiveTimestamp"}
        return {name: without_ids(value) for name, value in answer.items() if name not in own}
    return [without_ids(each) for each in answer] if isinstance(answer, list) else answer


@pytest.mark.soak
def test_threads_share_a_client_and_each_gets_its_own_answer(queues: list[Any], queue: Queue) -> None:
    _, client = queues
    together = threading.Barrier(8)

    def send(thread: int) -> list[bool]:
        together.wait()
        answers = []
        for number in range(20):
            entry = {"Id": f"{thread}-{number}", "MessageBody": "b"}
            answer = client.send_message_batch(QueueUrl=queue.url, Entries=[entry])
            answers.append([taken["Id"] for taken in answer["Successful"]] == [entry["Id"]])
        return answers

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(send, range(8))) == [[True] * 20] * 8
