"""The network as a process sees it, and which of the addresses it names may be connected to."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from reprocessing.domain.safety import url_policy
from reprocessing.domain.safety.url_policy import Address, AllowList, Endpoint, UrlDenied

_MOST_ADDRESSES: Final = 4  #: of one host, that are tried


def _resolve(host: str, port: int) -> Sequence[str]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(where[0]) for *_, where in found))


@dataclass(frozen=True, slots=True)
class Network:
    """The network as this process sees it.

    Attributes:
        resolve: the addresses of a host and port, as texts; an OSError where there are none.
        tls: which certificates are trusted; None trusts those that the system does.
    """

    resolve: Callable[[str, int], Sequence[str]] = _resolve
    tls: ssl.SSLContext | None = None


REAL_NETWORK: Final = Network()


def allowed_addresses(asked: Endpoint, texts: Sequence[str], allowed: AllowList) -> Sequence[Address] | UrlDenied:
    """Return the addresses that a host's name stands for, each of them good; one bad one spoils them all.

    Args:
        asked: where the name stands.
        texts: what it was resolved to, at least one.
        allowed: says what is good.
    """
    found = [url_policy.read_address(text) for text in texts]
    good = [address for address in found if address is not None and allowed.allows_address(address, asked.port)]
    if len(good) < len(found):
        return UrlDenied(
            f"{asked.authority} stands for an address that is not public. "
            "List that address or its network in REDRIVE_OUTBOUND_HOSTS, if it is meant"
        )
    return good[:_MOST_ADDRESSES]
