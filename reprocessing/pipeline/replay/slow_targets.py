"""Letters at targets that answer one by one, in their own time: hundreds are open, and told of in groups."""

from __future__ import annotations

import logging
import math
import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from django.db import Error as DatabaseError
from django.db import connection

from reprocessing.domain.replay.verdicts import Outcome, Unknown
from reprocessing.domain.safety.url_policy import AllowList
from reprocessing.domain.targets.async_sender import Carrier, Invocation, Post
from reprocessing.gateways.aws_services import Invocations
from reprocessing.gateways.http import Posts
from reprocessing.store.ordering import lanes
from reprocessing.store.replay.intent import Intended

logger = logging.getLogger(__name__)

#: Outcomes are told of when there are so many, or the first of them is so many seconds old; earlier where the most of
#: what was open has ended.
GROUP: Final = 100
RIPE_AFTER: Final = 0.1
#: Of the open requests what one target may have, at the most.
SHARE: Final = 0.8
#: Seconds beyond its timeout after which a letter that its carrier does not tell of is given up, as unknown.
OVERDUE: Final = 30.0
#: Streams that a process keeps for its next turns: one for the turn, one for what outlasted the last.
SPARE: Final = 2
#: Seconds for which one carrier is listened to while the other has something open, too.
_GLANCE: Final = 0.005

Call = Post | Invocation


@dataclass(slots=True)
class Stream:
    """Open requests of one turn, with the lanes that stay leased for them. For one thread at a time.

    Attributes:
        allowed: the hosts that letters may go to.
        limit: requests that are open at a time; what is more waits for room.
    """

    allowed: AllowList
    limit: int
    _carriers: dict[type[Call], Carrier[Any]] = field(default_factory=dict)
    _open: dict[int, Intended] = field(default_factory=dict)
    _until: dict[int, float] = field(default_factory=dict)
    _ended: list[tuple[Intended, Outcome]] = field(default_factory=list)
    _first: float = 0.0
    _renewed: float = 0.0

    @property
    def open(self) -> int:
        """Letters that were started and not told of yet."""
        return len(self._open) + len(self._ended)

    def room(self, target_id: int) -> int:
        """Letters that a target may have open besides those it has: one that hangs must not take all the room."""
        return max(1, math.floor(self.limit * SHARE)) - self.open_at(target_id)

    def open_at(self, target_id: int) -> int:
        """Letters that a target has; other threads may ask."""
        return sum(one.target_id == target_id for one in list(self._open.values()))

    def start(self, calls: Sequence[tuple[Intended, Call]], *, may_start: Callable[[int], bool]) -> None:
        """Begin these at once.

        Args:
            calls: each with the intent that was committed for it.
            may_start: asked with the target's id before each; one that may not ends as NotSent.
        """
        if not self.open:
            self._renewed = time.monotonic()
        now = time.monotonic()
        self._open |= {one.attempt_id: one for one, _ in calls}
        self._until |= {one.attempt_id: now + call.timeout + OVERDUE for one, call in calls}
        for target_id in {one.target_id for one, _ in calls}:
            of = [call for one, call in calls if one.target_id == target_id]

            def may(which: int = target_id) -> bool:
                return may_start(which)

            for kind in {type(call) for call in of}:
                try:
                    self._carrier(kind).start([call for call in of if isinstance(call, kind)], may_start=may)
                except Exception:  # what is at fault is not known, nor what went out; the letters must not stay open
                    logger.exception("%d letters could not be handed to their carrier", len(of))
                    self._tell([(call.attempt, Unknown("its carrier failed")) for call in of])

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

    def take_back(self, group: Sequence[tuple[Intended, Outcome]]) -> None:
        """Outcomes that were told of and not recorded: they are told of again."""
        self._ended = [*group, *self._ended]

    def renew(self, *, lease: float) -> None:
        """Lengthen the leases of the lanes that are open, when a third of them is over."""
        if not self.open or time.monotonic() - self._renewed < lease / 3:
            return
        self._renewed = time.monotonic()
        some = [*self._open.values(), *(one for one, _ in self._ended)]
        for _ in range(2):  # a connection that was lost is noticed when it is used
            try:
                lanes.renew([one.lane_id for one in some], [one.fence for one in some], lease=lease)
            except DatabaseError as error:
                logger.warning("Leases were not renewed: %s", error)
                connection.close_if_unusable_or_obsolete()
            else:
                break

    def close(self) -> None:
        """Let go of its connections and threads."""
        for one in self._carriers.values():
            one.close()
        self._carriers.clear()

    def _hear(self, wait: float) -> None:
        until = time.monotonic() + wait
        busy = [one for one in self._carriers.values() if one.open]
        while True:
            left = max(0.0, until - time.monotonic())
            within = left if len(busy) == 1 else min(left, _GLANCE)
            heard = [told for one in busy for told in one.ended(within=within)]
            self._tell(heard)
            if heard or not busy or time.monotonic() >= until:
                break
        late = [attempt for attempt, by in self._until.items() if by < time.monotonic()]
        self._tell([(attempt, Unknown("nothing was heard of it")) for attempt in late])

    def _tell(self, heard: Sequence[tuple[int, Outcome]]) -> None:
        """Note what these have come to; of each the first that is heard."""
        if heard and not self._ended:
            self._first = time.monotonic()
        for attempt, outcome in heard:
            self._until.pop(attempt, None)
            if one := self._open.pop(attempt, None):
                self._ended.append((one, outcome))

    def _carrier(self, kind: type[Call]) -> Carrier[Any]:
        """Made when it is first needed: many turns have no slow targets."""
        if kind not in self._carriers:
            self._carriers[kind] = (
                Posts(self.allowed, limit=self.limit) if kind is Post else Invocations(limit=self.limit)
            )
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

    def borrow(self, allowed: AllowList, limit: int) -> Stream:
        with self._lock:
            for one in self._idle:
                if (one.allowed, one.limit) == (allowed, limit):
                    self._idle.remove(one)
                    return one
        return Stream(allowed, limit)

    def give_back(self, stream: Stream) -> None:
        with self._lock:
            if len(self._idle) < SPARE:
                self._idle.append(stream)
                return
        stream.close()


_streams = _Streams()


def borrow(allowed: AllowList, limit: int) -> Stream:
    """A stream with nothing open; the caller's until it is given back."""
    return _streams.borrow(allowed, limit)


def give_back(stream: Stream) -> None:
    """Nothing of it is open any more."""
    _streams.give_back(stream)


def forget() -> None:
    """Begin anew: in a forked child."""
    global _streams  # noqa: PLW0603  one per process is what it is for
    _streams = _Streams()


os.register_at_fork(after_in_child=forget)
