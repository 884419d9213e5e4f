"""Where posts may go: URLs as they were read, and the addresses of their hosts, judged once for each answer."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Final

from reprocessing.domain.replay.verdicts import NotSent
from reprocessing.domain.safety import url_policy
from reprocessing.domain.safety.url_policy import Address, AllowList, Endpoint, UrlDenied
from reprocessing.gateways.http.dns import HostAddresses
from reprocessing.gateways.http.network import allowed_addresses

_MOST: Final = 1_000  #: URLs that are remembered


@dataclass(slots=True)
class ResolvedTarget:
    """A scheme, host and port that may be posted to.

    Attributes:
        current: the addresses that a new connection may be made to.
        good: those, and the ones it had before: connections to them may still be there.
    """

    texts: Sequence[str]
    current: Sequence[Address]
    good: Collection[Address]


@dataclass(slots=True)
class ResolvedTargets:
    """What may be posted to: what the list admits, by https; by plain http only what lies in a network of the list."""

    allowed: AllowList
    names: HostAddresses
    _read: dict[str, Endpoint | UrlDenied] = field(default_factory=dict)
    _places: dict[tuple[str, str, int], ResolvedTarget] = field(default_factory=dict)

    def read(self, url: str) -> Endpoint | NotSent:
        """The parts of a URL that may be posted to. That this process may not says nothing of the target."""
        if url not in self._read:
            if len(self._read) >= _MOST:
                self._read.clear()
            self._read[url] = url_policy.read_url(url, self.allowed)
        asked = self._read[url]
        return _not_sent(asked, unreachable=False) if isinstance(asked, UrlDenied) else asked

    def find(self, asked: Endpoint) -> ResolvedTarget | NotSent | None:
        """Where it leads now; None while that is being found out."""
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
        current = self._judge(asked, texts)
        if isinstance(current, UrlDenied):
            return _not_sent(current, unreachable=True)
        self._places[key] = ResolvedTarget(texts, current, {*current, *(before.good if before else ())})
        return self._places[key]

    def _judge(self, asked: Endpoint, texts: Sequence[str]) -> Sequence[Address] | UrlDenied:
        found = allowed_addresses(asked, texts, self.allowed)
        if isinstance(found, UrlDenied) or asked.scheme == "https":
            return found
        if all(self.allowed.lists(address, asked.port) for address in found):
            return found
        return UrlDenied(f"{asked.authority} is no address of a listed network, and plain http can be read; use https")


def _not_sent(denied: UrlDenied, *, unreachable: bool) -> NotSent:
    return NotSent(f"it may not be posted to: {denied.why}", unreachable=unreachable)
