"""Lean requests use the connections of botocore's client: its errors, its certificates, its proxies."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.reprocessing.gateways.aws.sqs_wire import PLAIN, always, call, outcome, read_request, sqs_client
from tests.reprocessing.web_servers import Server, certify, serving


def refused(client: Callable[..., Any], _: Path, __: pytest.MonkeyPatch) -> object:
    """The server is gone."""
    with serving(always(PLAIN)) as server:
        made = client(f"http://localhost:{server.port}")
        call(made)
        made._endpoint.http_session.close()
    return outcome(lambda: call(made))


def silent(client: Callable[..., Any], _: Path, __: pytest.MonkeyPatch) -> object:
    """The second answer does not come."""

    def script(wire: socket.socket, server: Server) -> None:
        read_request(wire)
        wire.sendall(PLAIN)
        read_request(wire)
        server.over.wait()

    with serving(script) as server:
        made = client(f"http://localhost:{server.port}", read_timeout=0.2)
        call(made)
        return outcome(lambda: call(made))


def half(client: Callable[..., Any], _: Path, __: pytest.MonkeyPatch) -> object:
    """The second answer stops in its body."""

    def script(wire: socket.socket, server: Server) -> None:
        read_request(wire)
        wire.sendall(PLAIN)
        read_request(wire)
        wire.sendall(PLAIN[:-1])
        server.over.wait()

    with serving(script) as server:
        made = client(f"http://localhost:{server.port}", read_timeout=0.2)
        call(made)
        return outcome(lambda: call(made))


def not_connected(client: Callable[..., Any], _: Path, patch: pytest.MonkeyPatch) -> object:
    """Connecting takes too long."""

    def late(*_: object, **__: object) -> None:
        raise TimeoutError

    with serving(always(PLAIN)) as server:
        made = client(f"http://localhost:{server.port}")
        call(made)
        made.close()
        patch.setattr("urllib3.util.connection.create_connection", late)
        return outcome(lambda: call(made))


def no_proxy(client: Callable[..., Any], _: Path, __: pytest.MonkeyPatch) -> object:
    """The proxy is gone."""
    with serving(always(PLAIN)) as server:
        made = client("http://sqs.test", proxies={"http": f"http://user:pass@127.0.0.1:{server.port}"})
        call(made)
        made.close()
    return outcome(lambda: call(made))


def trusted(client: Callable[..., Any], folder: Path, __: pytest.MonkeyPatch) -> object:
    """The certificate is one of the client's CA bundle."""
    shown, _ = certify(folder, "localhost")
    with serving(always(PLAIN), tls=shown) as server:
        made = client(f"https://localhost:{server.port}", verify=str(folder / "localhost.pem"))
        found = [call(made) for _ in range(3)]
        made.close()
    return found


def not_trusted(client: Callable[..., Any], folder: Path, __: pytest.MonkeyPatch) -> object:
    """The server shows another certificate on its second connection."""
    certify(folder, "localhost")
    shown = [ssl_of(folder, "localhost"), certify(folder / "..", "localhost")[0]]

    def script(wire: socket.socket, _: Server) -> None:
        with shown.pop(0).wrap_socket(wire, server_side=True) as secured:
            read_request(secured)
            secured.sendall(PLAIN)

    with serving(script) as server:
        made = client(f"https://localhost:{server.port}", verify=str(folder / "localhost.pem"))
        call(made)
        return outcome(lambda: call(made))


def tunnel(client: Callable[..., Any], folder: Path, __: pytest.MonkeyPatch) -> object:
    """A proxy is told to connect to the server."""
    shown, _ = certify(folder, "sqs.test")
    lines = []

    def script(wire: socket.socket, _: Server) -> None:
        asked = read_request(wire)
        lines.append(asked and (asked.line, dict(asked.headers).get("Proxy-Authorization")))
        wire.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
        with shown.wrap_socket(wire, server_side=True) as secured:
            while read_request(secured):
                secured.sendall(PLAIN)

    with serving(script) as server:
        proxies = {"https": f"http://user:pass@127.0.0.1:{server.port}"}
        made = client("https://sqs.test", proxies=proxies, verify=str(folder / "sqs.test.pem"))
        found = [call(made) for _ in range(3)]
        made.close()
    return found, lines


def forwarding(client: Callable[..., Any], _: Path, __: pytest.MonkeyPatch) -> object:
    """A proxy gets the requests themselves."""
    asked = []

    def script(wire: socket.socket, _: Server) -> None:
        while request := read_request(wire):
            told = dict(request.headers)
            asked.append((request.line, told["Host"], told["Proxy-Authorization"]))
            wire.sendall(PLAIN)

    with serving(script) as server:
        made = client("http://sqs.test", proxies={"http": f"http://user:pass@127.0.0.1:{server.port}"})
        found = [call(made) for _ in range(3)]
        made.close()
    return found, asked


def ssl_of(folder: Path, name: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / f"{name}.pem", folder / f"{name}.key")
    return context


@pytest.mark.parametrize(
    ("happens", "name"),
    [
        (refused, "EndpointConnectionError"), (silent, "ReadTimeoutError"), (half, "ReadTimeoutError"),
        (not_connected, "ConnectTimeoutError"), (no_proxy, "ProxyConnectionError"), (not_trusted, "SSLError"),
        (trusted, None), (tunnel, None), (forwarding, None),
    ],
)  # fmt: skip
def test_a_lean_request_meets_what_botocore_s_own_request_meets(
    happens: Callable[..., Any], name: str | None, tmp_path: Path
) -> None:
    found = []
    for lean in (False, True):
        folder = tmp_path / str(lean)
        folder.mkdir()
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("NO_PROXY", "")
            found.append(
                happens(lambda url, lean=lean, **options: sqs_client(url, lean=lean, **options), folder, patch)
            )
    kinds = [type(each) if name is None else each[0] for each in found]
    assert kinds == ([kinds[0]] * 2 if name is None else [name] * 2)
    if name is None:
        assert found[0] == found[1]
