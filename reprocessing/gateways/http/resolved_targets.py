"""Check whether requests to a target's URL are allowed. The result and the addresses are kept for later letters."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Final

from reprocessing.domain.replay.verdicts import NotSent
from reprocessing.domain.safety import url_policy
from reprocessing.domain.safety.url_policy import Address, AllowList, Endpoint, UrlDenied
from reprocessing.gateways.http.dns import HostAddresses
from reprocessing.gateways.http.network import allowed_addresses

_MOST: Final = 1_000  #: most URLs whose results are kept


@dataclass(slots=True)
class ResolvedTarget:
    """A scheme, host and port to which requests are allowed.

    Attributes:
        texts: the host's addresses as texts, as the resolver returned them last.
        current: addresses for new connections.
        good: addresses to which a kept-open connection may lead: the current addresses and all earlier addresses.
    """

    texts: Sequence[str]
    current: Sequence[Address]
    good: Collection[Address]


@dataclass(slots=True)
class ResolvedTargets:
    """Checks the URLs of targets, and keeps the results. `allowed`: hosts for HTTPS, and networks for plain HTTP."""

    allowed: AllowList
    names: HostAddresses
    _read: dict[str, Endpoint | UrlDenied] = field(default_factory=dict)
    _places: dict[tuple[str, str, int], ResolvedTarget] = field(default_factory=dict)

    def read(self, url: str) -> Endpoint | NotSent:
        """Return the parsed URL; NotSent if requests to it are not allowed.

        NotSent does not count as a failed attempt.
        """
        if url not in self._read:
            if len(self._read) >= _MOST:
                self._read.clear()
            self._read[url] = url_policy.read_url(url, self.allowed)
        asked = self._read[url]
        return _not_sent(asked, unreachable=False) if isinstance(asked, UrlDenied) else asked

    def find(self, asked: Endpoint) -> ResolvedTarget | NotSent | None:
        """Return the current addresses of the host; None while the host is being resolved.

        NotSent: the host could not be resolved, or one of its addresses is not allowed.
        """
        if isinstance(asked.host, str):
            texts = self.names.of(asked.host, asked.port)
            if not texts:
                return None if texts is None else NotSent(f"{asked.host} could not be resolved", unreachable=True)
        else:
            texts = (str(asked.host),)
        key = asked.scheme, str(asked.host), asked.port
        before = self._places.get(key)
        if before and before.texts == texts:
            return before
        current = self._allowed_addresses(asked, texts)
        if isinstance(current, UrlDenied):
            return _not_sent(current, unreachable=True)
        self._places[key] = ResolvedTarget(texts, current, {*current, *(before.good if before else ())})
        return self._places[key]

    def _allowed_addresses(self, asked: Endpoint, texts: Sequence[str]) -> Sequence[Address] | UrlDenied:
        found = allowed_addresses(asked, texts, self.allowed)
        if isinstance(found, UrlDenied) or asked.scheme == "https":
            return found
        if all(self.allowed.lists(address, asked.port) for address in found):
            return found
        return UrlDenied(f"{asked.authority} has no address in a listed network, so plain http is refused; use https")


def _not_sent(denied: UrlDenied, *, unreachable: bool) -> NotSent:
    return NotSent(f"it may not be posted to: {denied.why}", unreachable=unreachable)
