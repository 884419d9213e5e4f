"""What hosts resolve to, found out beside whoever asks: the system's resolver waits as long as it likes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

LIFE: Final = 30.0  #: seconds for which an answer holds
PATIENCE: Final = 3.0  #: seconds that a host may take
_PAUSE: Final = 1.0  #: seconds until a host that had no address is looked up again


@dataclass(slots=True)
class HostAddresses:
    """Hosts' addresses as they were found last. One thread for each host that is being looked up, and never two.

    Attributes:
        resolve: see `network.Network`.
        found: called from another thread when something was found out.
    """

    resolve: Callable[[str, int], Sequence[str]]
    found: Callable[[], None]
    _known: dict[tuple[str, int], tuple[Sequence[str], float]] = field(default_factory=dict)
    _asked: dict[tuple[str, int], float] = field(default_factory=dict)

    def of(self, host: str, port: int) -> Sequence[str] | None:
        """The host's addresses; none where it has none or they take too long, None while they are being found out."""
        now, key = time.monotonic(), (host, port)
        texts, until = self._known.get(key, ((), 0.0))
        if now < until:
            return texts
        if (since := self._asked.get(key)) is not None:
            return () if now - since > PATIENCE else None
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
