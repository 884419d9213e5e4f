"""Decide which URLs the service may request as targets and health checks, and which addresses hosts may resolve to.

The service requests URLs from inside the network, so it must not reach internal hosts by accident. A URL's host must be
listed in REDRIVE_OUTBOUND_HOSTS; the host's address must be public or listed there.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Final

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_LONGEST_URL: Final = 2_000
_LONGEST_HOST: Final = 253  # RFC 1035, without the dot at the end
_PORTS: Final = {"http": 80, "https": 443}
_MOST_PORTS: Final = 65_535
_URL = re.compile(r"(?ai)(?P<scheme>https?)://(?P<authority>[^/?#\\]+)(?P<path>[/?][!$-\[\]-~]*)?")
_AUTHORITY = re.compile(r"(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<host>[^\[\]:%]+))(?::(?P<port>[0-9]{1,5}))?")
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
#: The last part of a host name that resolvers read as an address, as in 127.1 or 0x7f000001 (WHATWG URL, "ends in a
#: number").
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
#: Characters that IDNA 2003 and 2008 encode differently (UTS 46, deviation characters).
_DEVIATIONS = frozenset("\u00df\u1e9e\u03c2\u200c\u200d")

#: IPv4 networks that are not public: IANA's special-purpose registry, multicast (224/4), and the reserved 240/4.
_SPECIAL = tuple(
    IPv4Network(network)
    for network in (
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
        "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
        "224.0.0.0/4", "240.0.0.0/4",
    )
)  # fmt: skip
#: The routed IPv6 range, and its parts that are not public: Teredo, documentation, 6to4.
_ROUTED = IPv6Network("2000::/3")
_NOT_ROUTED = tuple(IPv6Network(network) for network in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"))
#: IPv6 ranges that reach the IPv4 address in their last four bytes: mapped addresses and NAT64.
_STANDS_FOR_IPV4 = (IPv6Network("::ffff:0:0/96"), IPv6Network("64:ff9b::/96"))


@dataclass(frozen=True, slots=True)
class UrlDenied:
    """A URL or an entry of the allow list is refused. `why`: a clause without full stop. `cure`: what to set, or ""."""

    why: str
    cure: str = ""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The parts of a URL. `host` is an IP address, or a name in lower-case ASCII; `path` includes the query."""

    scheme: str
    host: str | Address
    port: int
    path: str

    @property
    def authority(self) -> str:
        """Return host and port as in a URL; the port is left out if it is the scheme's default."""
        host = f"[{self.host}]" if isinstance(self.host, IPv6Address) else str(self.host)
        return host if self.has_usual_port else f"{host}:{self.port}"

    @property
    def has_usual_port(self) -> bool:
        """Return whether the port is the scheme's default."""
        return self.port == _PORTS[self.scheme]


@dataclass(frozen=True, slots=True)
class AllowList:
    """Allowed hosts (`names`), and networks whose addresses are allowed although they are not public.

    If a name's port is None, only the scheme's default port is allowed. If a network's port is None, all ports are
    allowed.
    """

    names: frozenset[tuple[str, int | None]] = frozenset()
    networks: tuple[tuple[Network, int | None], ...] = ()

    def value_with_endpoint(self, endpoint: Endpoint) -> str:
        """Return a new value for REDRIVE_OUTBOUND_HOSTS: its present entries and this endpoint."""
        listed = [*self.names, *((_written(network), port) for network, port in self.networks)]
        entries = sorted(_entry(host, port) for host, port in listed)
        return ",".join([*entries, endpoint.authority])

    def lists_endpoint(self, endpoint: Endpoint) -> bool:
        """Return whether REDRIVE_OUTBOUND_HOSTS lists this host and port."""
        ports = {endpoint.port, None} if endpoint.has_usual_port else {endpoint.port}
        if isinstance(endpoint.host, str):
            return any((endpoint.host, port) in self.names for port in ports)
        return any(endpoint.host in network for network, port in self.networks if port in ports)

    def allows_address(self, address: Address, port: int) -> bool:
        """Return whether the service may connect to this address: the address is public or listed."""
        return self.lists(address, port) or _is_public(_reached_address(address))

    def lists(self, address: Address, port: int) -> bool:
        """Return whether this address is in a network that REDRIVE_OUTBOUND_HOSTS lists."""
        return bool(self.entry(address, port))

    def entry(self, address: Address, port: int) -> str:
        """Return the entry of REDRIVE_OUTBOUND_HOSTS whose network contains this address; "": there is none."""
        forms = {address, _reached_address(address)}
        for network, only in self.networks:
            if only in {port, None} and any(form in network for form in forms):
                return _entry(_written(network), only)
        return ""


def allow_list(entries: Sequence[str]) -> AllowList | UrlDenied:
    """Return the allow list of these entries. If an entry is refused, the reason names its position, not its text.

    Entries: status.example.com, status.example.com:8443, 10.1.2.3:8080, [fd00::1]:8080, 10.1.0.0/16.
    """
    names: set[tuple[str, int | None]] = set()
    networks: list[tuple[Network, int | None]] = []
    for place, entry in enumerate(entries, 1):
        found = _network(entry) if "/" in entry else _host(entry)
        if isinstance(found, UrlDenied):
            return UrlDenied(f"entry {place}: {found.why}")
        what, port = found
        if isinstance(what, str):
            names.add((what, port))
        else:
            networks.append((ipaddress.ip_network(what), port))
    return AllowList(frozenset(names), tuple(networks))


def read_url(url: str, allowed: AllowList) -> Endpoint | UrlDenied:
    """Return the parts of a URL, or why it is refused.

    The host must be listed in `allowed`, and the URL must have a form that all parsers read in the same way.
    """
    if len(url) > _LONGEST_URL:
        return UrlDenied(f"it is longer than {_LONGEST_URL:,} characters")
    parts = _URL.fullmatch(url)
    if parts is None:
        return UrlDenied(
            "it is not a URL such as https://status.example.com/health, in visible ASCII and without a fragment"
        )
    if "@" in parts["authority"]:
        return UrlDenied("it carries credentials, or an @ that hides its host; write the host alone")
    found = _host(parts["authority"])
    if isinstance(found, UrlDenied):
        return found
    scheme, (host, port) = parts["scheme"].lower(), found
    path = parts["path"] or "/"
    endpoint = Endpoint(scheme, host, port or _PORTS[scheme], path if path.startswith("/") else f"/{path}")
    if not allowed.lists_endpoint(endpoint):
        line = f"REDRIVE_OUTBOUND_HOSTS={allowed.value_with_endpoint(endpoint)}"
        return UrlDenied(
            f"{endpoint.authority} is not listed in REDRIVE_OUTBOUND_HOSTS",
            f"Set {line} for the workers and for this process, and restart them.",
        )
    return endpoint


def read_address(text: str) -> Address | None:
    """Return the IP address in a text; None: the text is not an IP address in the usual spelling."""
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _entry(host: str, port: int | None) -> str:
    return host if port is None else f"{host}:{port}"


def _written(network: Network) -> str:
    """Return a network as an entry of the allow list. A network of one address is written as the address alone."""
    if network.num_addresses > 1:
        return str(network)
    return f"[{network[0]}]" if network.version == 6 else str(network[0])  # noqa: PLR2004  IPv6


def _network(entry: str) -> tuple[Network, None] | UrlDenied:
    try:
        return ipaddress.ip_network(entry), None
    except ValueError:
        return UrlDenied("it is not a network; write one such as 10.1.0.0/16, with zeros after the prefix")


def _host(authority: str) -> tuple[str | Address, int | None] | UrlDenied:
    """Return host and port of a URL; port None: not given. IP addresses are accepted only in their usual spelling."""
    parts = _AUTHORITY.fullmatch(authority)
    if parts is None:
        return UrlDenied("its host cannot be read; write HOST or HOST:PORT, with a name or an address")
    port = int(parts["port"]) if parts["port"] else None
    if port is not None and not 1 <= port <= _MOST_PORTS:
        return UrlDenied(f"its port is not one of 1 to {_MOST_PORTS:,}")
    if parts["six"]:
        six = read_address(parts["six"])
        return (six, port) if isinstance(six, IPv6Address) else UrlDenied("the text in brackets is not an IPv6 address")
    name = _name(parts["host"])
    if isinstance(name, UrlDenied) or not _NUMBER.fullmatch(name.rpartition(".")[2]):
        return name if isinstance(name, UrlDenied) else (name, port)
    four = read_address(name)
    return (four, port) if four else UrlDenied("its host is a number; write an address with four decimal numbers")


def _name(host: str) -> str | UrlDenied:
    if len(host) > _LONGEST_HOST + 1:
        return UrlDenied(f"its host is longer than {_LONGEST_HOST} characters")
    if _DEVIATIONS & set(host):
        return UrlDenied("its host has letters that are encoded in two ways; write it in its xn-- form")
    try:
        plain = host if host.isascii() else host.encode("idna").decode("ascii")
    except UnicodeError:
        return UrlDenied("its host is not a valid name; write it in its xn-- form")
    name = plain.lower().removesuffix(".")
    if len(name) > _LONGEST_HOST or not all(_LABEL.fullmatch(label) for label in name.split(".")):
        return UrlDenied("its host is not a valid host name")
    return name


def _reached_address(ip: Address) -> Address:
    """Return the IPv4 address inside an IPv6 address such as ::ffff:10.0.0.1; else the address itself."""
    if isinstance(ip, IPv6Address) and any(ip in network for network in _STANDS_FOR_IPV4):
        return IPv4Address(int(ip) & 0xFFFF_FFFF)
    return ip


def _is_public(ip: Address) -> bool:
    if isinstance(ip, IPv4Address):
        return not any(ip in network for network in _SPECIAL)
    return ip in _ROUTED and not any(ip in network for network in _NOT_ROUTED)
