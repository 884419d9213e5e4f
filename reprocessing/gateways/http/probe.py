"""Check the health of a URL by one GET request. Neither the URL nor the server is trusted.

This module opens the socket itself, and uses only the parser of http.client. HTTP libraries are not used, for two
reasons. They resolve a host again when they connect, after its addresses were checked. And their timeouts start again
with every byte.
"""

from __future__ import annotations

import io
import socket
import ssl
import threading
import time
from collections.abc import Sequence
from functools import cache
from http import HTTPStatus
from http.client import HTTPException, HTTPResponse, IncompleteRead
from typing import Final

from reprocessing.domain.safety import url_policy
from reprocessing.domain.safety.health_check import HealthResult, HealthUnknown, Healthy, Unhealthy
from reprocessing.domain.safety.url_policy import Address, AllowList, Endpoint, UrlDenied
from reprocessing.gateways.http.network import REAL_NETWORK, Network, allowed_addresses

TIMEOUT: Final = 2.0  #: seconds for the whole check: DNS, connection, TLS, request and answer
LARGEST: Final = 65_536  #: most bytes of an answer, with its headers
_AGENT: Final = "redrive-health-check"
_PIECE: Final = 16_384  #: bytes of an answer that are read at once


class _TooLate(OSError):
    """The timeout of the whole check has passed."""


class _TooLarge(OSError):
    """The answer is larger than `LARGEST` bytes."""


def check(
    url: str, *, allowed: AllowList, expected: int | None = None, timeout: float = TIMEOUT, net: Network = REAL_NETWORK
) -> HealthResult:
    """Request the URL once, and return whether its status is healthy. The answer's content is never returned.

    The host is resolved once, all its addresses are checked, and a connection is made to one of these addresses.
    Redirects are not followed. Proxies, cookies and credentials are not used.

    Args:
        url: an http or https URL; see `domain.safety.url_policy`.
        allowed: the hosts and networks to which requests are allowed.
        expected: the HTTP status that is healthy; None: 200 to 299. A redirect is never healthy.
        timeout: seconds for the whole check.
        net: the resolver and the trusted certificates.

    Returns:
        HealthUnknown if the URL is not allowed or could not be resolved; Unhealthy if the answer is wrong or missing.
    """
    until = time.monotonic() + timeout
    asked = url_policy.read_url(url, allowed)
    if isinstance(asked, UrlDenied):
        return HealthUnknown(f"it may not be asked: {asked.why}")
    addresses = _addresses(asked, allowed, net, until)
    if isinstance(addresses, HealthUnknown):
        return addresses
    try:
        with _connect(addresses, asked.port, until) as plain:
            return _health_of_status(_exchange(plain, asked, net, until), expected)
    except (OSError, HTTPException, ValueError) as error:
        return Unhealthy(_in_words(error, timeout))


def _addresses(asked: Endpoint, allowed: AllowList, net: Network, until: float) -> Sequence[Address] | HealthUnknown:
    """Return the addresses of the host; HealthUnknown if it has none, or if one of its addresses is not allowed."""
    if not isinstance(asked.host, str):
        texts: Sequence[str] = [str(asked.host)]
    elif not (texts := _in_time(net, asked.host, asked.port, until)):
        return HealthUnknown(f"{asked.host} could not be resolved")
    found = allowed_addresses(asked, texts, allowed)
    return HealthUnknown(found.why) if isinstance(found, UrlDenied) else found


def _in_time(net: Network, host: str, port: int, until: float) -> Sequence[str]:
    """Return the host's addresses; empty if resolving has not ended at `until` (a monotonic time).

    The host is resolved in a thread, because the system's resolver has no timeout.
    """
    answers: list[Sequence[str]] = []

    def ask() -> None:
        try:
            answers.append(net.resolve(host, port))
        except (OSError, UnicodeError):
            answers.append(())

    asking = threading.Thread(target=ask, name=f"resolve {host}", daemon=True)
    asking.start()
    asking.join(max(0.0, until - time.monotonic()))
    return answers[0] if answers else ()


def _connect(addresses: Sequence[Address], port: int, until: float) -> socket.socket:
    """Return a connection to the first address that accepts it. Each address gets an equal part of the time left."""
    failed: OSError = _TooLate()
    for number, address in enumerate(addresses):
        made = socket.socket(socket.AF_INET if address.version == 4 else socket.AF_INET6, socket.SOCK_STREAM)  # noqa: PLR2004
        try:
            made.settimeout(_left(until) / (len(addresses) - number))
            made.connect((str(address), port))
        except OSError as error:
            made.close()
            failed = error
        else:
            return made
    raise failed


def _exchange(plain: socket.socket, asked: Endpoint, net: Network, until: float) -> int:
    """Send the request, read the whole answer, and return its HTTP status."""
    plain.settimeout(_left(until))  # a limit for the whole TLS handshake
    wire = plain
    if asked.scheme == "https":  # the certificate must be valid for the host name, whatever the address
        wire = (net.tls or _trusted()).wrap_socket(plain, server_hostname=str(asked.host))
    with wire:
        wire.settimeout(_left(until))
        wire.sendall(
            f"GET {asked.path} HTTP/1.1\r\nHost: {asked.authority}\r\nUser-Agent: {_AGENT}\r\n"
            "Accept: */*\r\nAccept-Encoding: identity\r\nConnection: close\r\n\r\n".encode("ascii")
        )
        with HTTPResponse(_Counted(wire, until), method="GET") as answer:  # type: ignore[arg-type]  # HTTPResponse uses only makefile()
            answer.begin()
            while answer.read(_PIECE):  # read() without a size allocates what Content-Length says
                pass
            if answer.length:
                raise IncompleteRead(b"", answer.length)
            return answer.status


@cache
def _trusted() -> ssl.SSLContext:
    return ssl.create_default_context()


def _health_of_status(status: int, expected: int | None) -> HealthResult:
    if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
        return Unhealthy(f"it answered {status}, a redirect, which is not followed; use the URL to which it leads")
    good = status == expected if expected is not None else HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES
    if good:
        return Healthy(f"it answered {status}")
    return Unhealthy(f"it answered {status} where {expected or '200 to 299'} is expected")


def _in_words(error: Exception, timeout: float) -> str:
    """Return an error in words for people, which quote nothing of the server's answer."""
    match error:
        case _TooLate() | TimeoutError():
            return f"it had not answered within {timeout:g} s"
        case _TooLarge():
            return f"its answer is larger than {LARGEST:,} bytes"
        case ssl.SSLCertVerificationError():
            return f"its certificate is invalid: {error.verify_message}"
        case ssl.SSLError():
            return f"no secure connection came about: {error.reason or type(error).__name__}"
        case OSError():
            return f"the connection failed: {error.strerror or type(error).__name__}"
        case _:
            return "what it answered is not HTTP"


def _left(until: float) -> float:
    left = until - time.monotonic()
    if left <= 0:
        raise _TooLate
    return left


class _Counted(io.RawIOBase):
    """Reads from a socket, with one size limit and one timeout for all reads together."""

    def __init__(self, wire: socket.socket, until: float) -> None:
        self._wire = wire
        self._until = until
        self._read = 0

    def makefile(self, _mode: str) -> io.BufferedReader:
        """Return a buffered reader, because http.client reads an answer from `socket.makefile()`."""
        return io.BufferedReader(self)

    def readable(self) -> bool:
        """Return True, as io.RawIOBase requires."""
        return True

    def readinto(self, into: memoryview[int]) -> int:  # type: ignore[override]  # a BufferedReader hands in nothing else
        """Read into a buffer; return the number of bytes that were read."""
        self._wire.settimeout(_left(self._until))
        got = self._wire.recv_into(into)
        self._read += got
        if self._read > LARGEST:
            raise _TooLarge
        return got
