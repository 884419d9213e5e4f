"""Define how host names are resolved, which TLS certificates are trusted, and which addresses requests may go to."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from reprocessing.domain.safety import url_policy
from reprocessing.domain.safety.url_policy import Address, AllowList, Endpoint, UrlDenied

_MOST_ADDRESSES: Final = 4  #: max addresses of one host that are tried


def _resolve(host: str, port: int) -> Sequence[str]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(where[0]) for *_, where in found))


@dataclass(frozen=True, slots=True)
class Network:
    """How host names are resolved, and which TLS certificates are trusted. Tests replace both.

    Attributes:
        resolve: returns the addresses of a host and port, as texts; raises OSError if there are none.
        tls: a context with the trusted certificates; None: the system's certificates.
    """

    resolve: Callable[[str, int], Sequence[str]] = _resolve
    tls: ssl.SSLContext | None = None


REAL_NETWORK: Final = Network()


def allowed_addresses(asked: Endpoint, texts: Sequence[str], allowed: AllowList) -> Sequence[Address] | UrlDenied:
    """Return up to four addresses of a host; UrlDenied if a connection to any of its addresses is not allowed.

    `texts`: all addresses to which the host was resolved.
    """
    found = [url_policy.read_address(text) for text in texts]
    good = [address for address in found if address is not None and allowed.allows_address(address, asked.port)]
    if len(good) < len(found):
        return UrlDenied(
            f"{asked.authority} stands for an address that is not public. "
            "To allow it, list the address or its network in REDRIVE_OUTBOUND_HOSTS"
        )
    return good[:_MOST_ADDRESSES]
