"""The two endpoints the contract runs against, each with a clock that tests can move."""

from __future__ import annotations

import json
import os
import sys
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import boto3
import pytest
from botocore.config import Config

from redrive_service.sandbox.servers.process import PROJECT, RunningServer, Server, free_port

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from mypy_boto3_sqs import SQSClient

REGION = "us-east-1"
Answer: TypeAlias = Any
"""Decoded JSON of the control interface; each test knows the shape of what it asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where the tests send. `advance` moves the endpoint's clock forward and answers with its time, in seconds."""

    name: str
    url: str
    client: SQSClient
    advance: Callable[[float], float]


@contextmanager
def sqs_client(url: str, *, read_timeout: float = 10.0) -> Iterator[SQSClient]:
    """A boto3 client that asks once: a retry would hide what an endpoint did."""
    client = boto3.client(
        "sqs",
        endpoint_url=url,
        region_name=REGION,
        aws_access_key_id="sandbox",
        aws_secret_access_key="sandbox",
        config=Config(
            retries={"total_max_attempts": 1}, connect_timeout=2, read_timeout=read_timeout, max_pool_connections=20
        ),
    )
    try:
        yield client
    finally:
        client.close()


@contextmanager
def moto_endpoint() -> Iterator[Endpoint]:
    """The server of moto in this process; its two time functions are shifted by what has been advanced."""
    from moto.core.utils import unix_time  # noqa: PLC0415  half a second, for those who run this endpoint only
    from moto.server import ThreadedMotoServer  # noqa: PLC0415  as above

    shift = 0.0

    def shifted_time() -> float:
        return float(unix_time()) + shift

    def advance(seconds: float) -> float:
        nonlocal shift
        shift += seconds
        return shifted_time()

    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("moto.sqs.models.unix_time", shifted_time)
        patch.setattr("moto.sqs.models.unix_time_millis", lambda: shifted_time() * 1000)
        server.start()
        try:
            host, port = server.get_host_and_port()
            url = f"http://{host}:{port}"
            with sqs_client(url) as client:
                yield Endpoint(name="moto", url=url, client=client, advance=advance)
        finally:
            server.stop()
            if server._server is not None:
                server._server.server_close()  # moto leaves its listening socket open


@contextmanager
def local_endpoint(folder: Path) -> Iterator[Endpoint]:
    """Our own server as a process of ours, in memory; what it says goes to a file in `folder`."""
    port = free_port()
    command = [sys.executable, "-m", "redrive_service.sandbox.sqs", "--port", str(port)]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    server = RunningServer(
        Server(name="The local SQS", command=command, log=folder / "sqs.log", environment=environment)
    )
    server.await_ready(lambda: "ready " in server.log_since_start())
    url = f"http://127.0.0.1:{port}"

    def advance(seconds: float) -> float:
        return float(control(url, "POST", "clock", {"advance": seconds})["now"])

    try:
        with sqs_client(url) as client:
            yield Endpoint(name="local", url=url, client=client, advance=advance)
    finally:
        server.stop()


def control(url: str, method: str, path: str, payload: object = None) -> Answer:
    """One call of the local SQS's own control interface; the decoded JSON answer, or None when there is none."""
    body = None if payload is None else json.dumps(payload).encode()
    request = urllib.request.Request(f"{url}/_sandbox/{path}", data=body, method=method)
    request.add_header("Content-Type", "application/json")
    with urllib.request.urlopen(request, timeout=10) as answer:
        content = answer.read()
    return json.loads(content) if content else None


class Sandbox:
    def __init__(self, url: str) -> None:
        self.url = url

    def plan(self, *faults: Mapping[str, object]) -> None:
        control(self.url, "PUT", "faults", list(faults))

    def faults(self) -> Answer:
        return control(self.url, "GET", "faults")

    def release(self) -> None:
        control(self.url, "DELETE", "faults")

    def calls(self, **filters: str) -> list[Answer]:
        query = "&".join(f"{name}={value}" for name, value in filters.items())
        calls: list[Answer] = control(self.url, "GET", f"calls?{query}")["calls"]
        return calls
