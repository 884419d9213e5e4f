"""Routes of the server: calls of the AWS API, and requests under /_sandbox/, with which tests control the server."""

from functools import partial
from typing import Final
from urllib.parse import parse_qsl, urlsplit

import orjson

from redrive_service.sandbox.sqs.api.errors import SqsError
from redrive_service.sandbox.sqs.server.connection import Connection
from redrive_service.sandbox.sqs.server.exchange import error_body, error_headers
from redrive_service.sandbox.sqs.server.fault_plan import FaultIsUnusable
from redrive_service.sandbox.sqs.server.http_head import HttpRequest
from redrive_service.sandbox.sqs.server.server import SqsServer

_PREFIX: Final = b"/_sandbox/"
_MOST_DIGITS: Final = 18
_LONGEST_ADVANCE: Final = 100 * 365 * 86_400  # seconds: 100 years


class _Unusable(Exception):
    """A request under /_sandbox/ is invalid. The error says why, and what to send instead."""

    def __init__(self, sentence: str, status: int = 400) -> None:
        super().__init__(sentence)
        self.status = status


def connect(server: SqsServer) -> Connection:
    """Return the connection object of a new client."""
    return Connection(partial(_serve, server))


def _serve(server: SqsServer, connection: Connection, request: HttpRequest) -> None:
    head = request.head
    if head.trouble:
        error = SqsError("MalformedHttpRequest", head.trouble, head.status)
        connection.answer(error.status, error_body(error), error_headers(error))
    elif head.target.startswith(_PREFIX):
        connection.answer(*_control(server, request))
    else:
        server.open(connection, request)
    server.polling.settle()


def _control(server: SqsServer, request: HttpRequest) -> tuple[int, bytes]:
    """Return status and JSON body of the answer to a request under /_sandbox/."""
    try:
        return 200, orjson.dumps(_answer(server, request))
    except _Unusable as refusal:
        return refusal.status, orjson.dumps({"error": str(refusal)})
    except FaultIsUnusable as refusal:
        return 400, orjson.dumps({"error": str(refusal)})


def _answer(server: SqsServer, request: HttpRequest) -> object:
    url = urlsplit(request.head.target.decode("latin-1"))
    query = dict(parse_qsl(url.query))
    method = b"GET" if request.head.method == b"HEAD" else request.head.method
    match method, url.path.removeprefix(_PREFIX.decode()):
        case b"GET", "health":
            return {"status": "ok"}
        case b"GET", "calls":
            since = query.get("since", "0")
            if not since.isascii() or not since.isdecimal() or len(since) > _MOST_DIGITS:
                raise _Unusable("since must be a whole number: the `next` of an earlier answer.")
            return server.calls.shown(
                since=int(since) if "since" in query else None, action=query.get("action"), queue=query.get("queue")
            )
        case b"DELETE", "calls":
            server.calls.clear()
            return {"calls": []}
        case b"GET", "faults":
            return server.faults.shown()
        case _:
            return _act(server, request, url.path)


def _act(server: SqsServer, request: HttpRequest, path: str) -> object:
    match request.head.method, path.removeprefix(_PREFIX.decode()):
        case b"PUT", "faults":
            server.plan_faults(_read(request))
            return server.faults.shown()
        case b"DELETE", "faults":
            server.plan_faults([])
            return []
        case b"POST", "clock":
            return {"now": server.advance_clock(_read_seconds(_read(request)))}
        case b"POST", "reset":
            server.reset()
            return {"status": "ok"}
        case method, _:
            raise _Unusable(
                f"There is no {method.decode('latin-1')} {path}. There are: GET health, GET and DELETE calls, GET, PUT "
                f"and DELETE faults, POST clock, POST reset (all under {_PREFIX.decode()}).",
                404,
            )


def _read(request: HttpRequest) -> object:
    try:
        content: object = orjson.loads(request.body)
    except orjson.JSONDecodeError:
        raise _Unusable("The body is not JSON; JSON has no NaN and no Infinity either.") from None
    return content


def _read_seconds(content: object) -> float:
    seconds = content.get("advance") if isinstance(content, dict) else None
    if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not 0 <= seconds <= _LONGEST_ADVANCE:
        raise _Unusable(
            f'Send {{"advance": seconds}}, with seconds from 0 to {_LONGEST_ADVANCE} (100 years): the clock never goes '
            "back.",
        )
    return seconds
