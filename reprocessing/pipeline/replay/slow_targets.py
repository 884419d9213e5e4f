"""Send letters to slow targets (HTTP, Lambda), hundreds at a time, and return the outcomes a hundred at a time."""

from __future__ import annotations

import logging
import math
import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from django.db import Error as DatabaseError
from django.db import connection

from reprocessing.domain.replay.verdicts import Outcome, Unknown
from reprocessing.domain.safety.url_policy import AllowList
from reprocessing.domain.targets.async_sender import AsyncSender, HttpCall, LambdaCall
from reprocessing.gateways.aws_services import Invocations
from reprocessing.gateways.http import Posts
from reprocessing.store.ordering import lanes
from reprocessing.store.replay.intent import IntendedSend

logger = logging.getLogger(__name__)

#: A group of outcomes is returned at this size, at this age in seconds, or when half of the open requests have ended.
GROUP_SIZE: Final = 100
GROUP_AGE: Final = 0.1
TARGET_SHARE: Final = 0.8  # largest share of the open requests that one target may have
GIVE_UP_AFTER: Final = 30.0  # seconds after a request's timeout until its outcome becomes Unknown
IDLE_STREAMS: Final = 2  # most streams without open requests that a process keeps
_GLANCE: Final = 0.005  # while HTTP and Lambda have open requests, wait alternately for so many seconds

Call = HttpCall | LambdaCall


@dataclass(slots=True)
class Stream:
    """The open requests of one slice (5 s of sending) to slow targets. Only one thread may use this object.

    `allowed`: the hosts to which requests are allowed. `limit`: the highest number of open requests.
    """

    allowed: AllowList
    limit: int
    note_end: Callable[[Iterable[int]], None] | None = None  # called with ids of ended attempts
    _carriers: dict[type[Call], AsyncSender[Any]] = field(default_factory=dict)
    _open: dict[int, IntendedSend] = field(default_factory=dict)
    _until: dict[int, float] = field(default_factory=dict)
    _ended: list[tuple[IntendedSend, Outcome]] = field(default_factory=list)
    _first: float = 0.0
    _renewed: float = 0.0

    @property
    def open(self) -> int:
        """The number of requests that were started and whose outcomes `take_ended` has not returned."""
        return len(self._open) + len(self._ended)

    def room_for(self, target_id: int) -> int:
        """Return how many more requests to a target may be opened. A target that hangs gets only a part of `limit`."""
        return max(1, math.floor(self.limit * TARGET_SHARE)) - self.open_requests(target_id)

    def open_requests(self, target_id: int) -> int:
        """Return the number of open requests to a target. Other threads may call this."""
        return sum(letter.target_id == target_id for letter in list(self._open.values()))

    def start(self, calls: Sequence[tuple[IntendedSend, Call]], *, may_start: Callable[[int], bool]) -> None:
        """Begin these requests.

        `may_start`: called with each request's target id; if it returns False, the outcome is `NotSent`.
        """
        if not self.open:
            self._renewed = time.monotonic()
        now = time.monotonic()
        self._open |= {letter.attempt_id: letter for letter, _ in calls}
        self._until |= {letter.attempt_id: now + call.timeout + GIVE_UP_AFTER for letter, call in calls}
        for target_id in {letter.target_id for letter, _ in calls}:
            of = [call for letter, call in calls if letter.target_id == target_id]
            may = partial(may_start, target_id)
            for kind in {type(call) for call in of}:
                try:
                    self._carrier(kind).start([call for call in of if isinstance(call, kind)], may_start=may)
                except Exception:  # some requests may have begun
                    logger.exception("%d requests could not be started", len(of))
                    self._note([(call.attempt, Unknown("the request could not be started")) for call in of])

    def take_ended(self, *, within: float) -> list[tuple[IntendedSend, Outcome]]:
        """Return attempts that have an outcome. Wait for this up to `within` seconds; then return an empty list.

        To record many outcomes together, wait until there are 100, or until one is 0.1 s old.
        """
        until = time.monotonic() + within
        while True:
            now = time.monotonic()
            self._receive(max(0.0, min(until, self._first + GROUP_AGE if self._ended else until) - now))
            if self._is_ripe():
                group, self._ended = self._ended, []
                return group
            if not self._open or time.monotonic() >= until:
                return []

    def take_back(self, group: Sequence[tuple[IntendedSend, Outcome]]) -> None:
        """Take outcomes that could not be recorded. `take_ended` will return them again."""
        self._ended = [*group, *self._ended]

    def renew(self, *, lease: float) -> None:
        """Renew the lease of each lane with an open request, if a third of the lease is over.

        `lease`: length of the new lease in seconds.
        """
        if not self.open or time.monotonic() - self._renewed < lease / 3:
            return
        self._renewed = time.monotonic()
        letters = [*self._open.values(), *(letter for letter, _ in self._ended)]
        for _ in range(2):  # a lost connection is noticed by the first try
            try:
                lanes.renew([letter.lane_id for letter in letters], [letter.fence for letter in letters], lease=lease)
            except DatabaseError as error:
                logger.warning("Leases were not renewed: %s", error)
                connection.close_if_unusable_or_obsolete()
            else:
                break

    def close(self) -> None:
        """Close the connections, and end the threads."""
        for carrier in self._carriers.values():
            carrier.close()
        self._carriers.clear()

    def _receive(self, wait: float) -> None:
        until = time.monotonic() + wait
        busy = [carrier for carrier in self._carriers.values() if carrier.open]
        while True:
            left = max(0.0, until - time.monotonic())
            within = left if len(busy) == 1 else min(left, _GLANCE)
            heard = [outcome for carrier in busy for outcome in carrier.ended(within=within)]
            self._note(heard)
            if heard or not busy or time.monotonic() >= until:
                break
        late = [attempt for attempt, by in self._until.items() if by < time.monotonic()]
        self._note([(attempt, Unknown("no answer arrived")) for attempt in late])

    def _note(self, heard: Sequence[tuple[int, Outcome]]) -> None:
        if heard and not self._ended:
            self._first = time.monotonic()
        if heard and self.note_end:
            self.note_end(attempt for attempt, _ in heard)
        for attempt, outcome in heard:
            self._until.pop(attempt, None)
            if letter := self._open.pop(attempt, None):
                self._ended.append((letter, outcome))

    def _carrier(self, kind: type[Call]) -> AsyncSender[Any]:
        if kind not in self._carriers:
            self._carriers[kind] = (
                Posts(self.allowed, limit=self.limit) if kind is HttpCall else Invocations(limit=self.limit)
            )
        return self._carriers[kind]

    def _is_ripe(self) -> bool:
        if not self._ended:
            return False
        most = len(self._ended) >= min(GROUP_SIZE, len(self._open))
        return most or time.monotonic() - self._first >= GROUP_AGE


_idle: list[Stream] = []
_lock = threading.Lock()


def borrow_stream(allowed: AllowList, limit: int) -> Stream:
    """Return a stream without open requests. The caller must return it with `give_back_stream`."""
    with _lock:
        for stream in _idle:
            if (stream.allowed, stream.limit) == (allowed, limit):
                _idle.remove(stream)
                return stream
    return Stream(allowed, limit)


def give_back_stream(stream: Stream) -> None:
    """Keep a stream and its connections for the next `borrow_stream`. If two streams are kept already, close it."""
    stream.note_end = None
    with _lock:
        if len(_idle) < IDLE_STREAMS:
            _idle.append(stream)
            return
    stream.close()


def forget_streams() -> None:
    """Forget all streams. A forked child process calls this, because its parent uses their connections."""
    global _lock  # noqa: PLW0603  # the parent's lock may be held
    _lock = threading.Lock()
    _idle.clear()


os.register_at_fork(after_in_child=forget_streams)
