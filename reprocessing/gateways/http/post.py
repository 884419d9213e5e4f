"""Send letters to HTTP endpoints. One thread has up to 500 requests open, and returns the outcome of each."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final

import pycurl

from reprocessing.domain.replay.verdicts import NotSent, Outcome, Refused
from reprocessing.domain.safety.url_policy import AllowList
from reprocessing.domain.targets import webhook_headers
from reprocessing.domain.targets.async_sender import HttpCall
from reprocessing.gateways.http.dns import HostAddresses
from reprocessing.gateways.http.network import REAL_NETWORK, Network
from reprocessing.gateways.http.request import OUT_OF_TIME, QueuedPost, Request
from reprocessing.gateways.http.resolved_targets import ResolvedTarget, ResolvedTargets
from reprocessing.gateways.http.transfers import Transfers

LIMIT: Final = 500  #: requests open at a time
_RESOLVE_POLL: Final = 0.25  #: seconds between two checks whether a waiting request's host is resolved


def _clock() -> datetime:
    return datetime.now(UTC)  # noqa: TID251 - used only to compare it with a date in a Retry-After header


@dataclass(slots=True)
class Posts:
    """Sends letters by HTTP POST. Requests proceed only while `start` or `ended` is running.

    HTTPS is allowed to the same hosts as for health checks (`domain.safety.url_policy`). Plain HTTP is allowed only to
    networks in REDRIVE_OUTBOUND_HOSTS. A host is resolved, all its addresses are checked, and connections are made only
    to these addresses. No redirects are followed. No proxies, cookies or credentials are used. An answer's content is
    not kept. If a connection breaks after libcurl began to send, the outcome is Unknown, and the letter is not sent
    again by this class.

    Attributes:
        allowed: the hosts and networks to which requests are allowed.
        net: the resolver and the trusted certificates.
        limit: the most open requests at a time. Further requests are queued.
        clock: returns the current time, to compare it with the dates in Retry-After headers.
    """

    allowed: AllowList
    net: Network = REAL_NETWORK
    limit: int = LIMIT
    clock: Callable[[], datetime] = _clock
    _transfers: Transfers = field(init=False, repr=False)
    _places: ResolvedTargets = field(init=False, repr=False)
    _waiting: deque[QueuedPost] = field(default_factory=deque, repr=False)
    _running: dict[pycurl.Curl, Request] = field(default_factory=dict, repr=False)
    _idle: list[Request] = field(default_factory=list, repr=False)
    _outcomes: list[tuple[int, Outcome]] = field(default_factory=list, repr=False)

    def __post_init__(self) -> None:
        self._transfers = Transfers(connections=self.limit)
        self._places = ResolvedTargets(self.allowed, HostAddresses(self.net.resolve, self._transfers.wake))

    @property
    def open(self) -> int:
        """Return how many calls were given to `start` and not yet returned by `ended`."""
        return len(self._waiting) + len(self._running) + len(self._outcomes)

    def start(self, calls: Sequence[HttpCall], *, may_start: Callable[[], bool]) -> None:
        """Queue these calls, and do not wait. If `may_start` returns False before a call, the call ends as NotSent."""
        for post in calls:
            asked = self._places.read(post.url)
            if isinstance(asked, NotSent):
                self._store_outcome(post, asked)
            elif not all(webhook_headers.is_header(name, value) for name, value in post.headers):
                self._store_outcome(
                    post, Refused("header", "one of its headers is invalid; nothing was sent", poison=True)
                )
            else:
                self._waiting.append(QueuedPost(post, asked, may_start))
        self._go_on(wait=0)

    def ended(self, *, within: float) -> list[tuple[int, Outcome]]:
        """Return ids and outcomes of ended attempts. Wait up to `within` seconds until at least one has ended."""
        until = time.monotonic() + within
        self._go_on(wait=0)
        while not self._outcomes and self.open and (left := until - time.monotonic()) > 0:
            self._go_on(wait=min(left, _RESOLVE_POLL) if self._waiting else left)
        outcomes, self._outcomes = self._outcomes, []
        return outcomes

    def close(self) -> None:
        """Drop all open calls. Some of these calls may already have arrived at their endpoints."""
        for handle in self._running:
            self._transfers.drop(handle)
        for request in (*self._running.values(), *self._idle):
            request.handle.close()
        for those in (self._waiting, self._running, self._idle, self._outcomes):
            those.clear()
        self._transfers.close()

    def _go_on(self, *, wait: float) -> None:
        """Let open requests proceed for up to `wait` seconds. Begin queued requests if fewer than `limit` are open."""
        self._collect_ended(wait)
        while self._begin():
            self._collect_ended(0)

    def _collect_ended(self, wait: float) -> None:
        for handle, error in self._transfers.proceed(wait=wait):
            request = self._running.pop(handle)
            self._transfers.drop(handle)
            outcome = request.outcome(error)
            if outcome is None:
                self._waiting.appendleft(replace(request.queued, anew=True))
            else:
                self._store_outcome(request.queued.post, outcome)
            request.drop_letter()
            self._idle.append(request)

    def _begin(self) -> bool:
        """Begin queued requests while fewer than `limit` are open. Return whether at least one request was begun.

        A request whose host is still being resolved stays in the queue.
        """
        unnamed: list[QueuedPost] = []
        begun = 0
        while self._waiting and len(self._running) < self.limit:
            queued = self._waiting.popleft()
            place = self._places.find(queued.asked)
            if place is None:
                unnamed.append(queued)
            elif isinstance(place, NotSent):
                self._store_outcome(queued.post, place)
            elif not queued.may_start():
                self._store_outcome(queued.post, NotSent(OUT_OF_TIME))
            else:
                self._begin_request(queued, place)
                begun += 1
        self._waiting.extendleft(reversed(unnamed))
        return bool(begun)

    def _begin_request(self, queued: QueuedPost, place: ResolvedTarget) -> None:
        request = self._idle.pop() if self._idle else Request(self.net.tls, self.clock, self._transfers.is_stale)
        request.prepare(queued, place)
        self._running[request.handle] = request
        self._transfers.add(request.handle)

    def _store_outcome(self, post: HttpCall, outcome: Outcome) -> None:
        self._outcomes.append((post.attempt, outcome))
