"""Requests that outlast the turn that began them are followed to their end: no turn waits for a slow answer."""

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
from reprocessing.store.replay.intent import Intended

logger = logging.getLogger(__name__)

#: Seconds for which outcomes are waited for, each time.
_TURN = 0.5

Finish = Callable[[Sequence[tuple[Intended, Outcome]]], None]


class _Lingering(threading.Thread):
    """One stream, until nothing of it is open."""

    def __init__(self, stream: Stream, finish: Finish, lease: float) -> None:
        super().__init__(name="requests that outlast their turn", daemon=True)
        self._stream, self._finish, self._lease = stream, finish, lease

    def run(self) -> None:
        try:
            while self._stream.open:
                ended = self._stream.ended(within=min(_TURN, self._lease / 3))
                if ended:
                    self._record(ended)
                self._stream.renew(lease=self._lease)
                if not ended:
                    connection.close()  # there may be many of us, each for as long as a target's timeout
            streams.give_back(self._stream)
        finally:
            connection.close()
            _lingering.discard(self)

    def open_at(self, target_id: int) -> int:
        return self._stream.open_at(target_id)

    def _record(self, ended: Sequence[tuple[Intended, Outcome]]) -> None:
        try:
            self._once_more(ended)
        except DatabaseError as error:
            logger.warning("%d outcomes were not recorded; they are unknown when leases end: %s", len(ended), error)
            connection.close()
        except Exception:  # whatever it was, what is still open has to be followed
            logger.exception("What became of %d letters may not be recorded; it is unknown when leases end", len(ended))
            connection.close()

    def _once_more(self, ended: Sequence[tuple[Intended, Outcome]]) -> None:
        """Record, over a new connection where the old one was lost: what was recorded before stays as it is."""
        try:
            self._finish(ended)
        except DatabaseError:
            connection.close()
            self._finish(ended)


_lingering: set[_Lingering] = set()


def follow(stream: Stream, finish: Finish, *, lease: float) -> None:
    """Follow what is open to its end, in a thread of its own; nothing new is started on this stream until then.

    Args:
        stream: the caller's, who gives it away.
        finish: records outcomes; lanes that it settles are kept by nobody.
        lease: seconds; renewed as long as requests are open.
    """
    one = _Lingering(stream, finish, lease)
    _lingering.add(one)
    one.start()


def open_at(target_id: int) -> int:
    """Letters that a target has from turns that are over."""
    return sum(one.open_at(target_id) for one in list(_lingering))


def wait(seconds: float) -> bool:
    """Wait for what lingers, before this process ends; whether all of it has ended in time."""
    until = time.monotonic() + seconds
    for one in list(_lingering):
        one.join(max(0.0, until - time.monotonic()))
    return not any(one.is_alive() for one in list(_lingering))


os.register_at_fork(after_in_child=_lingering.clear)
