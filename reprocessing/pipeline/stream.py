"""Letters at targets that answer one by one, in their own time: hundreds are open, and told of in groups."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from django.db import Error as DatabaseError

from reprocessing.domain.carrier import Carrier, Invocation, Post
from reprocessing.domain.endpoint import AllowList
from reprocessing.domain.verdict import Outcome
from reprocessing.models import lanes
from reprocessing.models.intent import Intended
from reprocessing.sqs import Invocations
from reprocessing.web import Posts

logger = logging.getLogger(__name__)

#: Outcomes are told of when there are so many, or the first of them is so many seconds old; earlier where the most of
#: what was open has ended.
GROUP: Final = 100
RIPE_AFTER: Final = 0.1
#: Seconds for which one carrier is listened to while the other has something open, too.
_GLANCE: Final = 0.005

Call = Post | Invocation


@dataclass(slots=True)
class Stream:
    """Open requests of one turn, with the lanes that stay leased for them. For one thread at a time."""

    allowed: AllowList
    _carriers: dict[type[Call], Carrier[Any]] = field(default_factory=dict)
    _open: dict[int, Intended] = field(default_factory=dict)
    _ended: list[tuple[Intended, Outcome]] = field(default_factory=list)
    _first: float = 0.0
    _renewed: float = 0.0

    @property
    def open(self) -> int:
        """Letters that were started and not told of yet."""
        return len(self._open) + len(self._ended)

    def start(self, calls: Sequence[tuple[Intended, Call]], *, may_start: Callable[[int], bool]) -> None:
        """Begin these at once.

        Args:
            calls: each with the intent that was committed for it.
            may_start: asked with the target's id before each; one that may not ends as NotSent.
        """
        if not self.open:
            self._renewed = time.monotonic()
        self._open |= {one.attempt_id: one for one, _ in calls}
        for target_id in {one.target_id for one, _ in calls}:
            of = [call for one, call in calls if one.target_id == target_id]

            def may(which: int = target_id) -> bool:
                return may_start(which)

            for kind in {type(call) for call in of}:
                self._carrier(kind).start([call for call in of if isinstance(call, kind)], may_start=may)

    def ended(self, *, within: float) -> list[tuple[Intended, Outcome]]:
        """A group of outcomes, none while it is not ripe. Waits up to `within` seconds for it."""
        until = time.monotonic() + within
        while True:
            now = time.monotonic()
            self._hear(max(0.0, min(until, self._first + RIPE_AFTER if self._ended else until) - now))
            if self._is_ripe():
                group, self._ended = self._ended, []
                return group
            if not self._open or time.monotonic() >= until:
                return []

    def renew(self, *, lease: float) -> None:
        """Lengthen the leases of the lanes that are open, when a third of them is over."""
        if not self.open or time.monotonic() - self._renewed < lease / 3:
            return
        self._renewed = time.monotonic()
        some = [*self._open.values(), *(one for one, _ in self._ended)]
        try:
            lanes.renew([one.lane_id for one in some], [one.fence for one in some], lease=lease)
        except DatabaseError as error:
            logger.warning("Leases were not renewed: %s", error)

    def _hear(self, wait: float) -> None:
        until = time.monotonic() + wait
        busy = [one for one in self._carriers.values() if one.open]
        while True:
            left = max(0.0, until - time.monotonic())
            within = left if len(busy) == 1 else min(left, _GLANCE)
            heard = [told for one in busy for told in one.ended(within=within)]
            if heard and not self._ended:
                self._first = time.monotonic()
            self._ended += [(self._open.pop(attempt), outcome) for attempt, outcome in heard]
            if heard or time.monotonic() >= until:
                return

    def _carrier(self, kind: type[Call]) -> Carrier[Any]:
        """Made when it is first needed: many turns have no slow targets."""
        if kind not in self._carriers:
            self._carriers[kind] = Posts(self.allowed) if kind is Post else Invocations()
        return self._carriers[kind]

    def _is_ripe(self) -> bool:
        if not self._ended:
            return False
        most = len(self._ended) >= min(GROUP, len(self._open))
        return most or time.monotonic() - self._first >= RIPE_AFTER


class _Streams:
    """Streams of this process that nobody uses: their connections stay open."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[Stream] = []

    def borrow(self, allowed: AllowList) -> Stream:
        with self._lock:
            for one in self._idle:
                if one.allowed == allowed:
                    self._idle.remove(one)
                    return one
        return Stream(allowed)

    def give_back(self, stream: Stream) -> None:
        with self._lock:
            self._idle.append(stream)


_streams = _Streams()


def borrow(allowed: AllowList) -> Stream:
    """A stream with nothing open; the caller's until it is given back."""
    return _streams.borrow(allowed)


def give_back(stream: Stream) -> None:
    """Nothing of it is open any more."""
    _streams.give_back(stream)


def forget() -> None:
    """Begin anew: in a forked child."""
    global _streams  # noqa: PLW0603  one per process is what it is for
    _streams = _Streams()


os.register_at_fork(after_in_child=forget)
