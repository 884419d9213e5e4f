"""Receive from one DLQ with several threads until all messages that it held at the beginning are received."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Self

from reprocessing.domain.errors import QueueUnreachable
from reprocessing.domain.message.envelope import ReceivedMessage
from reprocessing.gateways.sqs import QueueAddress, depth, receive
from reprocessing.store.capture.capture_lease import unexpected_error

logger = logging.getLogger(__name__)

#: The queue has run dry when each receiver thread had this many empty polls in a row.
EMPTY_POLLS = 3
#: If no poll is full for this many polls of each receiver, or this many seconds, SQS is asked for its message count.
SHORT_POLLS, SHORT_SECONDS = 10, 60.0
_ASK = 1.0  # seconds between two requests for the count of visible messages
_FULL = 10  # messages in a full poll: SQS returns no more to one receive request
_AHEAD = 30  # most polls whose messages wait to be stored
_STOP_CHECK_EVERY = 0.1  # seconds between two checks whether receiving must stop


@dataclass(frozen=True, slots=True)
class Poll:
    """The messages of one receive request, which began at the time `began`. A poll may be empty."""

    began: float
    arrived: Sequence[ReceivedMessage]


class ReceiverPool:
    """Receiver threads, for a `with` block. Iteration yields polls until the queue has run dry or the time is over.

    A poll with few messages does not show that the queue is nearly empty, because SQS may return only some of many. An
    empty poll does not always show that the queue is empty: a FIFO queue hides the later messages of a group until the
    received message is deleted. So an empty poll counts only after `note_written`.

    If messages keep arriving in small polls, SQS is asked how many messages are visible. If none is visible, all
    messages that the queue held at the beginning have been received.
    """

    def __init__(  # noqa: PLR0913  # arguments are passed by name
        self, address: QueueAddress, *, receivers: int, wait: int, visibility: int, seconds: float,
        stop: Callable[[], bool], clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self.has_run_dry = False  # all messages that the queue held at the beginning were received
        self.error = ""  # the error that ended a receiver; empty: none
        self._address, self._wait, self._visibility = address, wait, visibility
        self._end = time.monotonic() + seconds
        self._stop, self._clock = stop, clock
        self._over = threading.Event()
        self._heard: queue.Queue[Poll] = queue.Queue(maxsize=_AHEAD)
        self._quiet = [0] * receivers
        self._short = [0] * receivers
        self._since_full = self._asked_at = time.monotonic()
        self._left_nothing = False
        self._arrived = self._handed_over = self._settled = 0
        self._guard = threading.Condition()
        self._polling, self._at_work = 0, receivers
        self._threads = [threading.Thread(target=self._listen, args=(number,)) for number in range(receivers)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            while thread.is_alive():
                self._take(0)  # makes room in the queue of polls, for which the thread may wait
                thread.join(_STOP_CHECK_EVERY / 10)

    def __iter__(self) -> Iterator[Poll]:
        while self._at_work or not self._heard.empty():
            if self._stop() or time.monotonic() > self._end or self._leaves_nothing():
                self._over.set()
            poll = self._take(_STOP_CHECK_EVERY)
            self._handed_over += len(poll.arrived)
            yield poll
        self.has_run_dry = not self.error and (self._left_nothing or self._all_quiet())

    def note_written(self) -> None:
        """Tell the threads that the messages of all yielded polls are stored, and deleted from the queue if needed."""
        self._settled = self._handed_over

    def _take(self, timeout: float) -> Poll:
        try:
            return self._heard.get(timeout=timeout)
        except queue.Empty:
            return Poll(self._clock(), [])

    def _listen(self, number: int) -> None:
        try:
            self._receive(number)
        except Exception as error:
            logger.exception("A receiver of %s failed.", self._address.name)
            self.error = unexpected_error(error)
            self._over.set()
        finally:
            with self._guard:
                self._at_work -= 1
            self._heard.put(Poll(self._clock(), []))  # wakes the thread that iterates

    def _receive(self, number: int) -> None:
        while self._begins():
            hidden, asked = self._address.fifo and self._settled < self._arrived, self._clock()
            try:
                arrived = receive(self._address, wait=self._wait, visibility=self._visibility)
            except QueueUnreachable as error:
                self.error = str(error)
                self._over.set()
                return
            with self._guard:
                self._note(number, len(arrived), hidden=hidden)
                self._polling -= 1
                self._guard.notify_all()
            if arrived:
                self._heard.put(Poll(asked, arrived))

    def _begins(self) -> bool:
        """Return whether this thread must poll again; False: the queue has run dry, or the time is over.

        If the last polls were empty, first wait for polls that other threads have begun: they may bring messages.
        """
        with self._guard:
            while self._all_quiet() and self._polling and not self._over.is_set():
                self._guard.wait(_STOP_CHECK_EVERY)
            going_on = not self._over.is_set() and not self._all_quiet()
            self._polling += going_on
        return going_on

    def _note(self, number: int, arrived: int, *, hidden: bool) -> None:
        self._arrived += arrived
        self._short[number] += 1
        if arrived:
            self._quiet = [0] * len(self._quiet)
        elif not hidden:
            self._quiet[number] += 1
        if arrived >= _FULL:
            self._short, self._since_full = [0] * len(self._short), time.monotonic()

    def _leaves_nothing(self) -> bool:
        """Return whether SQS has counted no visible message in the queue, at the last question or before.

        SQS is asked only if polls bring few messages for some time.
        """
        if self._left_nothing or not self._is_trickling():
            return self._left_nothing
        self._asked_at = time.monotonic()
        try:
            self._left_nothing = depth(self._address).visible == 0
        except QueueUnreachable:
            return False
        return self._left_nothing

    def _is_trickling(self) -> bool:
        now = time.monotonic()
        with self._guard:
            long = min(self._short) >= SHORT_POLLS or now - self._since_full > SHORT_SECONDS
        return long and now - self._asked_at > _ASK and not self._over.is_set()

    def _all_quiet(self) -> bool:
        with self._guard:
            return all(polls >= EMPTY_POLLS for polls in self._quiet)
