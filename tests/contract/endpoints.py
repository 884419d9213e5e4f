"""The two endpoints the contract runs against, each with a clock that tests can move."""

from __future__ import annotations

import ctypes
import json
import signal
import subprocess
import sys
import threading
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import boto3
import pytest
from botocore.config import Config

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from mypy_boto3_sqs import SQSClient

REGION = "us-east-1"
Answer: TypeAlias = Any
"""Decoded JSON of the control interface; each test knows the shape of what it asked for."""

START_SECONDS = 20.0
STOP_SECONDS = 5.0
PR_SET_PDEATHSIG = 1


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
    """Our own server as a process of ours, in memory; what it says on stderr goes to a file in `folder`."""
    with local_server(folder) as url, sqs_client(url) as client:

        def advance(seconds: float) -> float:
            return float(control(url, "POST", "clock", {"advance": seconds})["now"])

        yield Endpoint(name="local", url=url, client=client, advance=advance)


@contextmanager
def local_server(folder: Path, *arguments: str) -> Iterator[str]:
    """The URL of a fresh local SQS; stopped with SIGTERM at the end, which must end it cleanly."""
    complaints = folder / "sqs.stderr"
    command = [sys.executable, "-m", "redrive_service.sandbox.sqs", "--port", "0", *arguments]
    with (
        complaints.open("ab") as stderr,
        subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            preexec_fn=_die_with_the_tests if sys.platform == "linux" else None,  # noqa: PLW1509  started from the main thread, before any other
        ) as server,
    ):
        try:
            yield _ready_url(server, complaints)
        finally:
            server.terminate()
            try:
                ended = server.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                server.kill()
                raise
        assert ended == 0, f"the local SQS ended with {ended}: {complaints.read_text()}"


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


def _ready_url(server: subprocess.Popen[str], complaints: Path) -> str:
    lines: list[str] = []
    stdout = server.stdout
    assert stdout is not None
    reader = threading.Thread(target=lambda: lines.append(stdout.readline()), daemon=True)
    reader.start()
    reader.join(START_SECONDS)
    words = lines[0].split() if lines else []
    if len(words) != 2 or words[0] != "ready":
        server.kill()
        pytest.fail(f"the local SQS did not say where it listens: {lines} {complaints.read_text()}")
    return words[1]


_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def _die_with_the_tests() -> None:
    """Runs in the child before exec: a killed test run must not leave a server behind."""
    if _libc is not None:
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
