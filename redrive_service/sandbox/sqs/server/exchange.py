"""One call of the AWS API, read from an HTTP request, and the format of error answers."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

import orjson

from redrive_service.sandbox.sqs.api.errors import SqsError, printable
from redrive_service.sandbox.sqs.api.parameters import Answer
from redrive_service.sandbox.sqs.server.connection import Connection
from redrive_service.sandbox.sqs.server.http_head import HttpRequest

_TARGET_PREFIX: Final = "AmazonSQS."
_NAMES_OF_QUEUES: Final = (("QueueUrl", "/"), ("QueueName", "/"), ("SourceArn", ":"))
_NAMESPACE: Final = "com.amazonaws.sqs#"


@dataclass(slots=True, eq=False)
class Exchange:
    """A call, and the connection on which it is answered.

    Attributes:
        address: the beginning of queue URLs in the answer.
        parameters: the parameters with which the call is executed. A fault may have changed them.
        asked: the parameters that the client sent.
        fault: the kind of the fault that affected the call on purpose, or None.
        silent: if true, a fault lets the call get no answer.
        refused: the entries of a batch call that a fault lets fail.
    """

    connection: Connection
    action: str
    address: str
    body: bytes
    parameters: dict[str, object] = field(default_factory=dict)
    asked: dict[str, object] = field(default_factory=dict)
    queue: str | None = None
    fault: str | None = None
    silent: bool = False
    refused: Sequence[Answer] = ()

    def rewrite(self, changes: dict[str, object]) -> None:
        """Change parameters of the call before it is executed. Faults need this."""
        self.parameters = {**self.parameters, **changes}
        self.body = json.dumps(self.parameters).encode()  # orjson refuses lone surrogates, which a request may have


def read_exchange(connection: Connection, request: HttpRequest) -> Exchange:
    """Return the call in an HTTP request. Its parameters are not read yet."""
    headers = request.head.headers
    action = _action_in(headers.get(b"x-amz-target", b""))
    return Exchange(connection, action, _address_in(headers.get(b"host", b"")), request.body)


@lru_cache(maxsize=1024)
def _action_in(target: bytes) -> str:
    return target.decode("latin-1").removeprefix(_TARGET_PREFIX)


@lru_cache(maxsize=1024)
def _address_in(host: bytes) -> str:
    return f"http://{host.decode('latin-1') or 'localhost'}"


def queue_named_in(parameters: dict[str, object]) -> str | None:
    """Return the name of the queue in a call's parameters, or None if they name no queue."""
    for parameter, separator in _NAMES_OF_QUEUES:
        value = parameters.get(parameter)
        if isinstance(value, str):
            return _last_part(value, separator)
    return None


@lru_cache(maxsize=4096)
def _last_part(text: str, separator: str) -> str:
    return printable(text).rpartition(separator)[2]


def error_body(error: SqsError) -> bytes:
    """Return the body of an error answer in AWS's JSON format."""
    return orjson.dumps({"__type": f"{_NAMESPACE}{error.shape}", "message": error.message})


def error_headers(error: SqsError) -> bytes:
    """Return the header line x-amzn-query-error: it has the error's code of AWS's older query protocol."""
    blame = "Sender" if error.sender_fault else "Receiver"
    code = "".join(character for character in error.code if character.isascii() and character.isprintable())
    return f"x-amzn-query-error: {code};{blame}\r\n".encode()
