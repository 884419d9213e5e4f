"""Resolve host names in threads, because the system's resolver has no timeout."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

LIFE: Final = 30.0  #: seconds for which the addresses of a host are kept
TIMEOUT: Final = 3.0  #: seconds after which a host that is being resolved counts as a host without an address
_PAUSE: Final = 1.0  #: seconds until a host without an address is resolved again


@dataclass(slots=True)
class HostAddresses:
    """The addresses of hosts, kept for 30 s. Each host is resolved by at most one thread at a time.

    Attributes:
        resolve: the resolver; see `network.Network`.
        found: a function that a thread calls when it has resolved a host.
    """

    resolve: Callable[[str, int], Sequence[str]]
    found: Callable[[], None]
    _known: dict[tuple[str, int], tuple[Sequence[str], float]] = field(default_factory=dict)
    _asked: dict[tuple[str, int], float] = field(default_factory=dict)

    def of(self, host: str, port: int) -> Sequence[str] | None:
        """Return the host's addresses; None while a thread resolves the host. Never waits.

        The result is empty if the host has no address, or if resolving takes longer than 3 s.
        """
        now, key = time.monotonic(), (host, port)
        texts, until = self._known.get(key, ((), 0.0))
        if now < until:
            return texts
        if (since := self._asked.get(key)) is not None:
            return () if now - since > TIMEOUT else None
        self._asked[key] = now
        threading.Thread(target=self._ask, args=key, name=f"resolve {host}", daemon=True).start()
        return None

    def _ask(self, host: str, port: int) -> None:
        try:
            texts = self.resolve(host, port)
        except (OSError, UnicodeError):
            texts = ()
        self._known[host, port] = (texts, time.monotonic() + (LIFE if texts else _PAUSE))
        del self._asked[host, port]
        self.found()
