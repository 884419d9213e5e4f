"""Stand-ins on loopback for services that moto cannot be: they speak the wire format of AWS's API, and decide nothing.

Lambda: moto runs functions in Docker; here a test says what each invocation gets. STS: moto lets everybody assume
every role for an hour; here a test says who may, and for how long. What these two answer is written from AWS's API
references, not recorded from AWS.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote


@dataclass(frozen=True)
class Asked:
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True)
class Said:
    """An answer; `hangs_up` ends the connection instead."""

    status: int = 200
    body: bytes = b"null"
    headers: dict[str, str] = field(default_factory=dict)
    hangs_up: bool = False


@dataclass
class StandIn:
    answer: Callable[[Asked], Said]
    url: str = ""
    asked: list[Asked] = field(default_factory=list)
    connections: int = 0


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 512

    def handle_error(self, request: object, client_address: object) -> None:
        """Who was asked has gone: that is its business."""


@contextmanager
def standing_in(answer: Callable[[Asked], Said]) -> Iterator[StandIn]:
    stand_in = StandIn(answer)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def setup(self) -> None:
            super().setup()
            stand_in.connections += 1

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            asked = Asked(unquote(self.path), {name.lower(): value for name, value in self.headers.items()}, body)
            stand_in.asked.append(asked)
            said = stand_in.answer(asked)
            if said.hangs_up:
                self.close_connection = True
                return
            self.send_response(said.status)
            for name, value in {"Content-Length": str(len(said.body)), **said.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(said.body)

        do_GET = do_POST  # noqa: N815  the name that http.server looks for

        def log_message(self, *_: object) -> None:
            """Nobody reads it."""

    server = _Server(("127.0.0.1", 0), Handler)
    stand_in.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield stand_in
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def lambda_error(status: int, code: str, message: str = "", **headers: str) -> Said:
    """Lambda refuses an invocation: https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html."""
    body = json.dumps({"Type": "User", "Message": message}).encode()
    return Said(status, body, {"x-amzn-ErrorType": code, "Content-Type": "application/json", **headers})


def function_error(kind: str, error: object) -> Said:
    return Said(200, json.dumps(error).encode(), {"X-Amz-Function-Error": kind, "x-amzn-RequestId": "request-1"})


def role_of(asked: Asked) -> str:
    return parse_qs(asked.body.decode())["RoleArn"][0]


def session_of(asked: Asked) -> str:
    return parse_qs(asked.body.decode())["RoleSessionName"][0]


def assumed(key: str, until: datetime) -> Said:
    """STS lets it be assumed: https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRole.html."""
    body = f"""<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><AssumedRoleUser>
<Arn>arn:aws:sts::111122223333:assumed-role/r/redrive</Arn><AssumedRoleId>A:redrive</AssumedRoleId></AssumedRoleUser>
<Credentials><AccessKeyId>{key}</AccessKeyId><SecretAccessKey>secret</SecretAccessKey><SessionToken>token</SessionToken>
<Expiration>{until:%Y-%m-%dT%H:%M:%SZ}</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>"""
    return Said(200, body.encode(), {"Content-Type": "text/xml"})


def not_assumed(code: str, message: str) -> Said:
    """STS does not."""
    body = f"""<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type>
<Code>{code}</Code><Message>{message}</Message></Error><RequestId>1</RequestId></ErrorResponse>"""
    return Said(403, body.encode(), {"Content-Type": "text/xml"})
