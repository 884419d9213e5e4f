"""One AWS call on its way through the server: read from HTTP, and written back as AWS JSON."""

import json
from dataclasses import dataclass, field
from typing import Final, cast

import orjson

from redrive_service.sandbox.sqs.errors import SqsError, printable
from redrive_service.sandbox.sqs.http import Connection, HttpRequest
from redrive_service.sandbox.sqs.parameters import Answer

_TARGET_PREFIX: Final = "AmazonSQS."
_NAMESPACE: Final = "com.amazonaws.sqs#"


@dataclass(slots=True, eq=False, kw_only=True)
class Exchange:
    """A call and whom to answer.

    `asked` is what the client sent and `parameters` what is done, as faults changed it. `fault` is the kind of the
    fault that struck it, `refused` are the entries that failed by it, and a `silent` call is done but not answered.
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
    refused: list[Answer] = field(default_factory=list)

    def rewrite(self, changes: dict[str, object]) -> None:
        """Changes the request before it is done, as a fault tells."""
        self.parameters = {**self.parameters, **changes}
        self.body = json.dumps(self.parameters).encode()  # not orjson's: a request may hold lone surrogates


def read_exchange(connection: Connection, request: HttpRequest) -> Exchange:
    """The exchange that a request opens; its parameters are not read yet."""
    return Exchange(
        connection=connection,
        action=request.head.header(b"x-amz-target").removeprefix(_TARGET_PREFIX),
        address=f"http://{request.head.header(b'host') or 'localhost'}",
        body=request.body,
    )


def read_parameters(body: bytes) -> dict[str, object]:
    """The JSON object in a request's body, or a SerializationException."""
    try:
        parameters = orjson.loads(body)
    except orjson.JSONDecodeError:
        parameters = _read_leniently(body)
    if not isinstance(parameters, dict):
        raise SqsError("SerializationException", "The request's body is not a JSON object.")
    return parameters


def _read_leniently(body: bytes) -> object:
    """JSON with lone surrogates is JSON to AWS: such text is refused later, by what it is used for."""
    try:
        return cast("object", json.loads(body))
    except (ValueError, RecursionError):
        return None


def queue_named_in(parameters: dict[str, object]) -> str | None:
    """The name of the queue that a request is about."""
    for parameter, separator in (("QueueUrl", "/"), ("QueueName", "/"), ("SourceArn", ":")):
        value = parameters.get(parameter)
        if isinstance(value, str):
            return printable(value).rpartition(separator)[2]
    return None


def error_body(error: SqsError) -> bytes:
    """The body of an error answer."""
    return orjson.dumps({"__type": f"{_NAMESPACE}{error.shape}", "message": error.message})


def error_headers(error: SqsError) -> bytes:
    """The header that tells query-compatible clients the error's code."""
    blame = "Sender" if error.sender_fault else "Receiver"
    code = "".join(character for character in error.code if character.isascii() and character.isprintable())
    return f"x-amzn-query-error: {code};{blame}\r\n".encode()
