"""Servers on loopback that behave, and that do not; each answers one connection after the other, by a script."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

BLANK = b"\r\n\r\n"


@dataclass
class Server:
    """A listening server, and what it was asked so far."""

    port: int
    asked: list[bytes] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)


Script = Callable[[socket.socket, Server], None]


@contextmanager
def serving(script: Script, *, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1") -> Iterator[Server]:
    """The server, until the end of the block."""
    with socket.create_server((host, 0)) as listening:
        listening.settimeout(0.05)
        server = Server(listening.getsockname()[1])
        thread = threading.Thread(target=_serve, args=(listening, script, server, tls))
        thread.start()
        try:
            yield server
        finally:
            server.over.set()
            thread.join()


def _serve(listening: socket.socket, script: Script, server: Server, tls: ssl.SSLContext | None) -> None:
    while not server.over.is_set():
        try:
            plain, _ = listening.accept()
        except TimeoutError:
            continue
        plain.settimeout(30)
        with plain, contextlib.suppress(OSError), tls.wrap_socket(plain, server_side=True) if tls else plain as wire:
            script(wire, server)


def question(wire: socket.socket, server: Server) -> None:
    """Read what is asked."""
    got = b""
    while BLANK not in got and (more := wire.recv(4096)):
        got += more
    server.asked.append(got)


def answering(answer: bytes) -> Script:
    """Answers every question with these bytes."""

    def script(wire: socket.socket, server: Server) -> None:
        question(wire, server)
        wire.sendall(answer)

    return script


def status(number: int, *heads: str, body: bytes = b"well") -> bytes:
    """A whole answer."""
    lines = [f"HTTP/1.1 {number} Whatever", f"Content-Length: {len(body)}", *heads]
    return "\r\n".join(lines).encode() + BLANK + body


def dribbling(first: bytes, piece: bytes) -> Script:
    """Sends the first bytes, and then for ever a piece every 20 ms: no single read takes long."""

    def script(wire: socket.socket, server: Server) -> None:
        question(wire, server)
        wire.sendall(first)
        while not server.over.wait(0.02):
            wire.sendall(piece)

    return script


def greeting(wire: socket.socket, _: Server) -> None:
    """Speaks first, and no HTTP."""
    wire.sendall(b"220 mail.test ready\r\n")


def silent(_: socket.socket, server: Server) -> None:
    """Takes the connection and says nothing."""
    server.over.wait()


def endless(first: bytes, piece: bytes) -> Script:
    """Sends for ever, as fast as it can."""

    def script(wire: socket.socket, server: Server) -> None:
        question(wire, server)
        wire.sendall(first)
        while not server.over.is_set():
            wire.sendall(piece)

    return script


def certify(folder: Path, name: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """What a server of this name shows, and what a client trusts who trusts it."""
    key = ec.generate_private_key(ec.SECP256R1())
    issued = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "tests")])
    begins = datetime(2020, 1, 1, tzinfo=UTC)
    made = (
        x509.CertificateBuilder().subject_name(issued).issuer_name(issued).public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begins).not_valid_after(begins + timedelta(days=36_500))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    shown, secret = folder / f"{name}.pem", folder / f"{name}.key"
    shown.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    secret.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(shown, secret)
    return server, ssl.create_default_context(cafile=str(shown))
