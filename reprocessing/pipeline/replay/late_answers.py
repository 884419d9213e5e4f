"""Wait for answers of slow targets after the task that sent the requests has ended. Each such task gets a thread."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Sequence

from django.db import Error as DatabaseError
from django.db import connection

from reprocessing.domain.replay.verdicts import Outcome
from reprocessing.pipeline.replay import slow_targets as streams
from reprocessing.pipeline.replay.slow_targets import Stream
from reprocessing.store.replay.intent import IntendedSend

logger = logging.getLogger(__name__)

_WAIT = 0.5  # longest wait for outcomes, in seconds; then the leases are renewed if due

RecordOutcomes = Callable[[Sequence[tuple[IntendedSend, Outcome]]], None]


class _AnswerThread(threading.Thread):
    def __init__(self, stream: Stream, finish: RecordOutcomes, lease: float) -> None:
        super().__init__(name="requests that outlast their turn", daemon=True)
        self._stream, self._finish, self._lease = stream, finish, lease

    def run(self) -> None:
        try:
            while self._stream.open:
                ended = self._stream.take_ended(within=min(_WAIT, self._lease / 3))
                if ended:
                    self._record(ended)
                self._stream.renew(lease=self._lease)
                if not ended:
                    connection.close()  # many threads may wait here, each with a connection
            streams.give_back_stream(self._stream)
        finally:
            connection.close()
            _open_threads.discard(self)

    def open_at(self, target_id: int) -> int:
        return self._stream.open_requests(target_id)

    def _record(self, ended: Sequence[tuple[IntendedSend, Outcome]]) -> None:
        """Record outcomes. If the database fails, repeat this once with a new connection. Repeating does no harm."""
        for _ in range(2):
            try:
                self._finish(ended)
            except DatabaseError as error:
                logger.warning("Recording %d outcomes failed: %s", len(ended), error)
                connection.close()
            except Exception:  # the thread continues with the open requests
                logger.exception("%d outcomes may not be recorded; they are unknown when leases end", len(ended))
                return connection.close()
            else:
                return None
        return None


_open_threads: set[_AnswerThread] = set()


def follow_stream(stream: Stream, finish: RecordOutcomes, *, lease: float) -> None:
    """Start a thread that waits for the answers to open requests, records them, and renews the lanes' leases meanwhile.

    `stream`: the open requests. `finish`: records outcomes. `lease`: length of the leases in seconds.
    """
    thread = _AnswerThread(stream, finish, lease)
    _open_threads.add(thread)
    thread.start()


def open_requests(target_id: int) -> int:
    """Return how many requests to a target this process still has open from tasks that have ended."""
    return sum(thread.open_at(target_id) for thread in list(_open_threads))


def wait_for_all(seconds: float) -> bool:
    """Wait up to `seconds` for the answers to the open requests of ended tasks. Return whether all have arrived."""
    until = time.monotonic() + seconds
    for thread in list(_open_threads):
        thread.join(max(0.0, until - time.monotonic()))
    return not any(thread.is_alive() for thread in list(_open_threads))


os.register_at_fork(after_in_child=_open_threads.clear)
