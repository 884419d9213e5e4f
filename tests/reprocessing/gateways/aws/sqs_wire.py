"""Two clients of one queue, botocore's own and a lean one, and servers that answer both with prepared bytes."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from reprocessing.gateways.aws.lean_requests import use_lean_requests
from tests.reprocessing.web_servers import BLANK, Script, Server, status

URL = "https://sqs.eu-west-1.amazonaws.com/111122223333/orders"
ATTRIBUTES = {
    "text": {"DataType": "String", "StringValue": "Zürich"}, "bytes": {"DataType": "Binary", "BinaryValue": b"\0\xff"}
}  # fmt: skip
CALLS: dict[str, dict[str, Any]] = {
    "receive_message": {
        "MaxNumberOfMessages": 10, "WaitTimeSeconds": 1, "VisibilityTimeout": 60, "MessageAttributeNames": ["All"],
    },
    "send_message_batch": {"Entries": [{"Id": "0", "MessageBody": "é\u2028", "MessageAttributes": ATTRIBUTES}]},
    "delete_message_batch": {"Entries": [{"Id": "0", "ReceiptHandle": "handle"}]},
    "change_message_visibility_batch": {"Entries": [{"Id": "0", "ReceiptHandle": "handle", "VisibilityTimeout": 30}]},
}  # fmt: skip
PLAIN = status(200, body=b"{}")


def sqs_client(  # the types of boto3
    url: str,
    *,
    lean: bool,
    prepare: Callable[[Any], None] = lambda _: None,
    **options: Any,  # noqa: ANN401
) -> Any:  # noqa: ANN401
    """A client for `url`. `prepare` is called with it before it is made lean."""
    verify = options.pop("verify", None)
    config = {"read_timeout": 5, "connect_timeout": 5, "retries": {"total_max_attempts": 1}, **options}
    made = cast("Any", boto3.client)(
        "sqs", region_name="eu-west-1", aws_access_key_id="id", aws_secret_access_key="secret",
        aws_session_token="token", endpoint_url=url, verify=verify,
        config=Config(parameter_validation=False, **config),
    )  # fmt: skip
    prepare(made)
    if lean:
        use_lean_requests(made)
    return made


def call(client: Any, action: str = "receive_message", url: str = URL) -> dict[str, Any]:  # noqa: ANN401 - boto3's
    answer: dict[str, Any] = getattr(client, action)(QueueUrl=url, **CALLS[action])
    answer.pop("ResponseMetadata", None)
    return answer


def outcome(ask: Callable[[], object]) -> object:
    """The answer, or what the error says."""
    try:
        return ask()
    except ClientError as error:
        metadata = error.response["ResponseMetadata"]
        told = metadata["HTTPStatusCode"], metadata["HTTPHeaders"]  # the rest is about botocore's retries
        return type(error).__name__, error.operation_name, error.response["Error"], told
    except (BotoCoreError, ValueError) as error:
        return type(error).__name__, re.sub(r"\d", "", str(error))  # ports differ


@dataclass(frozen=True, slots=True)
class Request:
    """A request as it was on the wire."""

    line: str
    headers: list[tuple[str, str]]
    body: bytes
    connection: int

    @property
    def is_lean(self) -> bool:
        """Whether botocore did not make it: it names each attempt."""
        return "amz-sdk-request" not in dict(self.headers)


@dataclass
class Sqs:
    """Answers the requests of all connections in turn. It hangs up after the last answer, and those of `hangs_up`.

    A request for which there is no answer is recorded; a test sees that there was one too many.
    """

    answers: Sequence[bytes]
    hangs_up: frozenset[int] = frozenset()
    requests: list[Request] = field(default_factory=list)
    connections: int = 0

    def script(self, wire: socket.socket, _: Server) -> None:
        self.connections += 1
        number = -1
        last = len(self.answers) - 1
        while number < last and number not in self.hangs_up and (request := read_request(wire, self.connections)):
            number = len(self.requests)
            self.requests.append(request)
            wire.sendall(b"".join(self.answers[number : number + 1]))


def read_request(wire: socket.socket, connection: int = 0) -> Request | None:
    got = b""
    while BLANK not in got:
        if not (more := wire.recv(65_536)):
            return None
        got += more
    head, _, body = got.partition(BLANK)
    line, *lines = head.decode("latin-1").split("\r\n")
    headers = [(name, value) for name, _, value in (each.partition(": ") for each in lines)]
    while len(body) < int(dict(headers).get("Content-Length", "0")):
        body += wire.recv(65_536)
    return Request(line, headers, body, connection)


def always(answer: bytes) -> Script:
    """Answers each request of each connection with these bytes."""

    def script(wire: socket.socket, _: Server) -> None:
        while read_request(wire):
            wire.sendall(answer)

    return script


def said(document: object) -> bytes:
    return status(200, body=json.dumps(document).encode())
