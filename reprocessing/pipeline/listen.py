"""Several receivers of one dlq, side by side, until every one of them has heard silence for a while."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from typing import Self

from reprocessing.domain.envelope import Arrival
from reprocessing.domain.errors import QueueIsOutOfReach
from reprocessing.sqs import QueueAddress, receive

#: Long polls in a row that must not be full before a receiver has heard silence, since any receiver's last full one.
QUIET_POLLS = 3
_FULL = 10
#: Polls whose messages may wait to be written; beyond that the receivers wait.
_AHEAD = 30


class Listening:
    """Receivers at work inside a `with` block; iterate for what they receive.

    Each item is the messages of one or several polls; an empty one says that time has passed. The iteration ends when
    all have heard silence, at the deadline, or when `stop` says so; what was received until then is handed over first.

    A FIFO queue hides what is behind a message that was received, until that is deleted. So its silence counts only
    as long as nothing is out: whoever iterates calls `settled`.

    Attributes:
        silent: the queue ran dry: every receiver heard silence.
        trouble: why a receiver gave up; empty while none has.
    """

    def __init__(  # noqa: PLR0913  # each by its name
        self, address: QueueAddress, *, receivers: int, wait: int, visibility: int, seconds: float,
        stop: Callable[[], bool],
    ) -> None:  # fmt: skip
        self.silent = False
        self.trouble = ""
        self._address, self._wait, self._visibility = address, wait, visibility
        self._end = time.monotonic() + seconds
        self._stop = stop
        self._over = threading.Event()
        self._heard: queue.Queue[list[Arrival]] = queue.Queue(maxsize=_AHEAD)
        self._quiet = [0] * receivers
        self._arrived = self._handed_over = self._settled = 0
        self._guard = threading.Lock()
        self._threads = [threading.Thread(target=self._listen, args=(number,)) for number in range(receivers)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        while any(thread.is_alive() for thread in self._threads):  # a receiver may stand before a full queue
            self._take(0.05)
        for thread in self._threads:
            thread.join()

    def __iter__(self) -> Iterator[list[Arrival]]:
        while any(thread.is_alive() for thread in self._threads) or not self._heard.empty():
            if self._stop() or time.monotonic() > self._end:
                self._over.set()
            arrived = self._take(0.1)
            self._handed_over += len(arrived)
            yield arrived
        self.silent = not self.trouble and all(polls >= QUIET_POLLS for polls in self._quiet)

    def settled(self) -> None:
        """All that was handed over until now is written, and deleted where it had to be."""
        self._settled = self._handed_over

    def _take(self, patience: float) -> list[Arrival]:
        try:
            return self._heard.get(timeout=patience)
        except queue.Empty:
            return []

    def _listen(self, number: int) -> None:
        while not self._over.is_set() and not self._all_quiet():
            hidden = self._address.fifo and self._settled < self._arrived
            try:
                arrived = receive(self._address, wait=self._wait, visibility=self._visibility)
            except QueueIsOutOfReach as error:
                self.trouble = str(error)
                self._over.set()
                return
            with self._guard:
                self._arrived += len(arrived)
                if len(arrived) == _FULL or (arrived and self._address.fifo):
                    self._quiet = [0] * len(self._quiet)
                elif not hidden:
                    self._quiet[number] += 1
            if arrived:
                self._heard.put(arrived)

    def _all_quiet(self) -> bool:
        with self._guard:
            return all(polls >= QUIET_POLLS for polls in self._quiet)
