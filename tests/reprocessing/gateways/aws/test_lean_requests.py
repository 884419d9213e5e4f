"""Lean requests are botocore's own requests, and their answers are read as botocore reads them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import boto3
import pytest
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.compat import HTTPHeaders
from botocore.config import Config
from botocore.exceptions import ClientError, ReadTimeoutError

from reprocessing.gateways.aws.lean_requests import ACTIONS, use_lean_requests

URL = "https://sqs.eu-west-1.amazonaws.com/111122223333/orders"
ATTRIBUTES = {
    "text": {"DataType": "String", "StringValue": "Zürich"}, "bytes": {"DataType": "Binary", "BinaryValue": b"\0\xff"}
}  # fmt: skip
CALLS: dict[str, dict[str, Any]] = {
    "receive_message": {
        "MaxNumberOfMessages": 10, "WaitTimeSeconds": 1, "VisibilityTimeout": 60, "MessageAttributeNames": ["All"],
    },
    "send_message_batch": {"Entries": [{"Id": "0", "MessageBody": "é\ud800", "MessageAttributes": ATTRIBUTES}]},
    "delete_message_batch": {"Entries": [{"Id": "0", "ReceiptHandle": "handle"}]},
    "change_message_visibility_batch": {"Entries": [{"Id": "0", "ReceiptHandle": "handle", "VisibilityTimeout": 30}]},
}  # fmt: skip
MESSAGE = {"MessageId": "m", "Body": "b", "MessageAttributes": {
    "text": ATTRIBUTES["text"], "bytes": {"DataType": "Binary", "BinaryValue": "AP8="}}}  # fmt: skip
#: botocore adds them for its retries, and signs everything else.
OF_RETRIES = {"amz-sdk-invocation-id", "amz-sdk-request"}


@dataclass
class Raw:
    """The bytes of an answer."""

    content: bytes

    def stream(self, *_: object, **__: object) -> list[bytes]:
        return [self.content]


class Wire:
    """A client whose requests go nowhere: each is kept, and gets the prepared answer."""

    def __init__(
        self, *, lean: bool, status: int = 200, body: bytes = b"{}", headers: dict[str, str] | None = None
    ) -> None:
        self.client = cast("Any", boto3.client)(
            "sqs", region_name="eu-west-1", aws_access_key_id="id", aws_secret_access_key="secret",
            aws_session_token="token", endpoint_url="https://sqs.eu-west-1.amazonaws.com",
            config=Config(retries={"total_max_attempts": 1}, parameter_validation=False),
        )  # fmt: skip
        self.requests: list[AWSPreparedRequest] = []

        def send(request: AWSPreparedRequest) -> AWSResponse:
            self.requests.append(request)
            return AWSResponse(request.url, status, HTTPHeaders.from_dict(headers or {}), Raw(body))

        self.client._endpoint.http_session.send = send
        if lean:
            use_lean_requests(self.client)

    def call(self, action: str) -> dict[str, Any]:
        answer: dict[str, Any] = getattr(self.client, action)(QueueUrl=URL, **CALLS[action])
        answer.pop("ResponseMetadata", None)
        return answer

    def sent(self, action: str) -> tuple[object, ...]:
        self.call(action)
        (request,) = self.requests
        headers = {name.lower(): _text(value) for name, value in request.headers.items()}
        signed = headers.pop("authorization").split("SignedHeaders=")[1].split(",")[0].split(";")
        rest = {name: value for name, value in headers.items() if name not in {*OF_RETRIES, "x-amz-date"}}
        return request.method, request.url, request.body, rest, sorted(set(signed) - OF_RETRIES)


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def both(ask: Callable[[Wire], object], **answer: Any) -> list[object]:  # noqa: ANN401 - those of Wire
    return [ask(Wire(lean=lean, **answer)) for lean in (False, True)]


def test_every_frequent_action_has_a_case() -> None:
    assert {name.title().replace("_", "") for name in CALLS} == set(ACTIONS)


@pytest.mark.parametrize("action", CALLS)
def test_a_lean_request_is_the_same_to_the_byte_and_signs_the_same_headers(action: str) -> None:
    usual, lean = both(lambda wire: wire.sent(action))
    assert usual == lean


@pytest.mark.parametrize(
    "body",
    [
        json.dumps({"Messages": [MESSAGE]}).encode(), b"{}", b'{"Messages": null}', b"<html>a proxy</html>",
        b'{"Messages": [{"MessageId": "m", "Attributes": null, "MessageAttributes": null}]}',
        b'{"Messages": [{"MessageId": "m", "Body": "\\ud800"}]}',
    ],
)  # fmt: skip
def test_an_answer_is_read_as_botocore_reads_it(body: bytes) -> None:
    usual, lean = both(lambda wire: wire.call("receive_message"), body=body)
    assert usual == lean


@pytest.mark.parametrize("status", [400, 403, 500])
def test_an_error_is_the_same_and_the_request_is_not_sent_again(status: int) -> None:
    def ask(wire: Wire) -> object:
        with pytest.raises(ClientError) as caught:
            wire.call("send_message_batch")
        response = caught.value.response
        return response["Error"], response["ResponseMetadata"]["HTTPStatusCode"], len(wire.requests)

    headers = {"x-amzn-query-error": "AWS.SimpleQueueService.NonExistentQueue;Sender"}
    body = b'{"__type": "com.amazonaws.sqs#QueueDoesNotExist", "message": "no such queue"}'
    usual, lean = both(ask, status=status, body=body, headers=headers)
    assert usual == lean
    said = {
        "Code": "AWS.SimpleQueueService.NonExistentQueue", "Message": "no such queue",
        "QueryErrorCode": "QueueDoesNotExist", "Type": "Sender",
    }  # fmt: skip
    assert lean == (said, status, 1)


def test_a_lost_answer_raises_botocore_s_error() -> None:
    wire = Wire(lean=True)

    def lose(_: AWSPreparedRequest) -> AWSResponse:
        raise ReadTimeoutError(endpoint_url=URL)

    wire.client._endpoint.http_session.send = lose
    with pytest.raises(ReadTimeoutError):
        wire.call("send_message_batch")
