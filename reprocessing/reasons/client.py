"""Define `Reporter`, which queues a consumer's reports on messages, and sends the reports in batches from a thread."""

from __future__ import annotations

import atexit
import json
import logging
import os
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from queue import Empty, SimpleQueue
from typing import Final, Literal
from weakref import WeakSet

from reprocessing.reasons import endpoint
from reprocessing.reasons.endpoint import Accepted, NotAccepted, Rejected
from reprocessing.reasons.names import Names
from reprocessing.reasons.reason import Reason, reason_of

logger = logging.getLogger("redrive.reasons")

#: What a report says about a message. "delivered": it was processed; "failed": it failed, and is not delivered again;
#: "retrying": it failed, and SQS delivers it again.
Verdict = Literal["delivered", "failed", "retrying"]

FLUSH_AT_EXIT: Final = 1.5  # seconds for which waiting reports are sent when the process exits
_LARGEST_BATCH: Final = 512 * 1024  # bytes; the endpoint accepts 1 MiB
_LOGGED_AT: Final = frozenset({1, 10, 100, 1_000})  # a warning is logged after so many failed requests in a row


@dataclass(frozen=True, slots=True)
class Counts:
    """How many reports of this process were queued, dropped, accepted and refused so far.

    Attributes:
        taken: reports that were queued.
        dropped: reports that were lost, such as when the queue was full.
        nameless: reports on messages without ids, which are not sent.
        accepted: reports that the endpoint accepted.
        refused: reports that the endpoint refused.
    """

    taken: int = 0
    dropped: int = 0
    nameless: int = 0
    accepted: int = 0
    refused: int = 0


class Reporter:
    """Sends a consumer's reports on messages to the redrive service, in batches.

    `report` never waits and never raises. Reports wait in a queue. When the queue is full, further reports are dropped
    and counted. A daemon thread sends the first report immediately, then at most `batch` reports every `every` seconds.
    Each process has its own thread, which starts with the first report. While the endpoint is not reachable, the thread
    retries with backoff. At exit, waiting reports are sent for at most 1.5 s. A killed process loses its reports.
    """

    def __init__(  # noqa: PLR0913  # keyword arguments
        self,
        url: str,
        token: str,
        *,
        message: bool = True,
        scrub: Callable[[str], str] | None = None,
        ignores: tuple[type[BaseException], ...] = (),
        capacity: int = 1_000,
        batch: int = 100,
        every: float = 1.0,
        timeout: float = 3.0,
        longest_rest: float = 60.0,
        clock: Callable[[], float] = time.time,  # noqa: TID251  # the time of a report
    ) -> None:
        """Check the arguments, without connecting.

        Args:
            url: the service's endpoint, such as https://redrive.example.com/reports; if empty, nothing is reported.
            token: the reporter's token.
            message: whether the texts of exceptions are reported. Such texts may quote payloads.
            scrub: a function that gets the text of an exception, and returns it without secrets.
            ignores: types of exceptions that are not reported, such as `InProgress` of reprocessing.idempotency.
            capacity: highest number of reports in the queue.
            batch: highest number of reports in one request.
            every: seconds between two requests.
            timeout: seconds for the connection, and for each read of the answer.
            longest_rest: longest backoff (s) while the endpoint is not reachable.
            clock: returns the time in seconds since 1970.

        Raises:
            InvalidEndpoint: the URL or the token is not valid.
        """
        self._endpoint = endpoint.read_endpoint(url, token, timeout=timeout) if url else None
        self._message, self._scrub, self._ignores, self._clock = message, scrub, ignores, clock
        self._capacity, self._batch, self._every, self._longest_rest = capacity, batch, every, longest_rest
        self.reset_after_fork()
        _reporters.add(self)

    def reset_after_fork(self) -> None:
        """Create an empty queue, and forget the sending thread, which does not exist in a forked child process.

        A child process calls this after a fork; the parent keeps the old queue.
        """
        self._queue: SimpleQueue[bytes | None] = SimpleQueue()
        self._lock = threading.RLock()
        self._counts: dict[str, int] = {}
        self._thread: threading.Thread | None = None
        self._closing = threading.Event()

    @property
    def counts(self) -> Counts:
        """Return how many reports of this process were queued, dropped, accepted and refused."""
        with self._lock:
            return Counts(**self._counts)

    def report(self, verdict: Verdict, names: Names, error: BaseException | None = None) -> None:
        """Queue a report. Never waits, never raises. A report on a message without ids is counted, but not sent."""
        try:
            self._take(verdict, names, error)
        except Exception:  # noqa: BLE001  # must never harm the consumer
            self._count(dropped=1)

    def close(self, *, within: float = FLUSH_AT_EXIT) -> None:
        """Send the waiting reports. Return when they are sent, or after `within` seconds.

        Later reports are dropped.
        """
        self.start_closing()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(within)

    def start_closing(self) -> None:
        """Ask the thread to send the waiting reports and to end. Return at once."""
        self._closing.set()
        self._queue.put(None)

    def _take(self, verdict: Verdict, names: Names, error: BaseException | None) -> None:
        if self._endpoint is None or isinstance(error, self._ignores):
            return
        if not names:
            self._count(nameless=1)
            return
        if self._closing.is_set() or self._queue.qsize() >= self._capacity:
            self._count(dropped=1)
            return
        reason = reason_of(error, message=self._message, scrub=self._scrub) if error is not None else Reason()
        self._queue.put(_in_json(verdict, names, reason, self._clock()))
        self._count(taken=1)
        if self._thread is None or not self._thread.is_alive():
            self._begin()

    def _begin(self) -> None:
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                thread = threading.Thread(target=self._send_on, name="redrive-reasons", daemon=True)
                thread.start()
                self._thread = thread

    def _count(self, **more: int) -> None:
        with self._lock:
            for name, number in more.items():
                self._counts[name] = self._counts.get(name, 0) + number

    def _send_on(self) -> None:
        failures = 0
        due = 0.0
        batch: list[bytes] = []
        while True:
            batch = batch or self._gather(due)
            if not batch:
                return
            due = time.monotonic() + self._every
            answer = self._endpoint.post(b'{"reports": [' + b", ".join(batch) + b"]}") if self._endpoint else Accepted()
            failures = failures + 1 if isinstance(answer, NotAccepted) else 0
            match answer:
                case Accepted(refused):
                    self._count(accepted=len(batch) - refused, refused=refused)
                    batch = []
                case Rejected(why):
                    self._count(refused=len(batch))
                    logger.warning("redrive.reasons.rejected reports=%d: %s", len(batch), why)
                    batch = []
                case NotAccepted(why):
                    self._tell(why, failures, waiting=len(batch) + self._queue.qsize())
                    if self._closing.is_set():
                        self._count(dropped=len(batch) + self._left())
                        return
                    self._closing.wait(self._rest(failures))

    def _gather(self, due: float) -> list[bytes]:
        """Wait until the next batch is due or full, and return its reports; empty: the reporter is closed.

        `due`: the monotonic time at which the batch is sent, even if it is not full.
        """
        batch: list[bytes] = []
        size = 0
        while len(batch) < self._batch and size < _LARGEST_BATCH:
            try:
                report = self._next(due - time.monotonic() if batch else None)
            except Empty:
                break
            if report is None:
                if self._queue.empty():
                    break
                continue
            batch.append(report)
            size += len(report)
        return batch

    def _next(self, wait: float | None) -> bytes | None:
        if self._closing.is_set():
            return self._queue.get_nowait()
        return self._queue.get() if wait is None else self._queue.get(timeout=max(wait, 0.0))

    def _left(self) -> int:
        """Empty the queue. Return how many reports were in it; these are never sent."""
        left = 0
        while not self._queue.empty():
            left += self._queue.get_nowait() is not None
        return left

    def _rest(self, failures: int) -> float:
        """Return the backoff in seconds: 1, doubled with each further failed request, up to `longest_rest`.

        The result is multiplied by a random factor from 0.5 to 1.
        """
        rest = min(self._longest_rest, 2.0 ** min(failures - 1, 30))
        return rest * random.uniform(0.5, 1.0)  # noqa: S311  # not cryptographic

    def _tell(self, why: str, failures: int, *, waiting: int) -> None:
        if failures in _LOGGED_AT:
            logger.warning(
                "redrive.reasons.unheard tries=%d waiting=%d dropped=%d: %s",
                failures,
                waiting,
                self.counts.dropped,
                why,
            )


def _in_json(verdict: Verdict, names: Names, reason: Reason, at: float) -> bytes:
    said = {
        "message_id": names.message_id, "redrive_id": names.redrive_id, "verdict": verdict, "type": reason.type,
        "message": reason.message, "fingerprint": reason.fingerprint,
        "at": datetime.fromtimestamp(at, UTC).isoformat(),
    }  # fmt: skip
    return json.dumps({name: value for name, value in said.items() if value}, ensure_ascii=False).encode()


_reporters: WeakSet[Reporter] = WeakSet()


def _begin_all_anew() -> None:
    for reporter in list(_reporters):
        reporter.reset_after_fork()


def _close_all() -> None:
    deadline = time.monotonic() + FLUSH_AT_EXIT
    reporters = list(_reporters)
    for reporter in reporters:
        reporter.start_closing()
    for reporter in reporters:
        reporter.close(within=max(deadline - time.monotonic(), 0.0))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_all_anew)
atexit.register(_close_all)
