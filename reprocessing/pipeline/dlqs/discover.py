"""Look for the DLQs of one account and region, page by page. A look that was interrupted goes on where it was."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from reprocessing.conf import Conf
from reprocessing.domain.dlqs.discovery import SourceKind
from reprocessing.domain.errors import CloudWatchUnreachable, QueueUnreachable
from reprocessing.gateways.aws.request_pace import RequestPace
from reprocessing.gateways.sqs import QueueAddress
from reprocessing.models.discovery import DiscoveryStage
from reprocessing.pipeline.dlqs.read_scope import QueuePage, ScopeReader
from reprocessing.store.dlqs import discovered_queues, discovery_scopes
from reprocessing.store.dlqs.discovered_queues import LookPage
from reprocessing.store.dlqs.discovery_scopes import OpenLook
from reprocessing.store.ordering.lanes import database_now

#: Queues that are read and stored at once.
PAGE: Final = 200
#: Longest list of sentences about what could not be read.
_MOST_UNREAD: Final = 20
_KINDS: Final = {
    DiscoveryStage.FUNCTIONS: SourceKind.FUNCTION,
    DiscoveryStage.SUBSCRIPTIONS: SourceKind.SUBSCRIPTION,
    DiscoveryStage.RULES: SourceKind.RULE,
}
_NEXT: Final = dict(zip(list(DiscoveryStage), list(DiscoveryStage)[1:], strict=False))


class LookResult(StrEnum):
    """How a call of `look` ended."""

    COMPLETE = "complete"
    STOPPED = "stopped"  #: the next look goes on
    BUSY = "busy"  #: another process looks at the scope


@dataclass(frozen=True, slots=True)
class Progress:
    """What a look does: the stage, and the queues that are read and listed in stage `queues`."""

    stage: DiscoveryStage
    done: int = 0
    listed: int = 0


class _LeaseLost(Exception):
    """Another process has leased the scope: it took too long to renew the lease."""


def look(
    scope_id: int, conf: Conf, *, dice: Callable[[], float], stop: Callable[[], bool] = lambda: False,
    report: Callable[[Progress], None] = lambda _: None,
) -> LookResult:  # fmt: skip
    """Look at a scope, and store what is found after each page.

    What cannot be read is recorded as sentences; it is no error.

    Args:
        scope_id: the id of the scope's row.
        conf: the settings.
        dice: random numbers from 0 to below 1, for backoff.
        stop: whether to stop after the current page.
        report: is called before each page.
    """
    begun = discovery_scopes.begin_look(scope_id)
    if begun is None:
        return LookResult.BUSY
    turn = _Look(begun, conf, dice, report)
    try:
        for _ in turn.pages():
            if stop():
                discovery_scopes.release(begun)
                return LookResult.STOPPED
    except _LeaseLost:
        return LookResult.BUSY
    except BaseException:
        discovery_scopes.release(begun)
        raise
    return LookResult.COMPLETE


def look_at_due(conf: Conf, *, dice: Callable[[], float], seconds: float) -> bool:
    """Look at the scopes that are due, for so many seconds; return False if some are left."""
    until = time.monotonic() + seconds
    for key in discovery_scopes.due_scopes():
        if look(key, conf, dice=dice, stop=lambda: time.monotonic() >= until) is LookResult.STOPPED:
            return False
    return True


class _Look:
    """One look by the holder of a lease."""

    def __init__(
        self, begun: OpenLook, conf: Conf, dice: Callable[[], float], report: Callable[[Progress], None]
    ) -> None:
        self._begun, self._conf, self._report = begun, conf, report
        self._reader = ScopeReader(begun.scope, RequestPace(dice), self._renew)
        self._own = frozenset(QueueAddress.of(url).arn for url in conf.own_queues)
        self._unread = [(kind, sentence) for kind, sentence in begun.unread]

    def pages(self) -> Iterator[None]:
        """Read page after page; yield after each page is stored."""
        stage: DiscoveryStage | None = DiscoveryStage(self._begun.stage)
        marker = self._begun.marker
        while stage is not None:
            if stage is DiscoveryStage.QUEUES:
                yield from self._queues()
            elif stage is DiscoveryStage.NAMED:
                self._named()
            else:
                yield from self._destinations(stage, marker)
            stage, marker = _NEXT.get(stage), ""
        self._complete()

    def _queues(self) -> Iterator[None]:
        try:
            listed = self._reader.queues()
        except QueueUnreachable as error:
            self._store(QueuePage(unread=[str(error)]), DiscoveryStage.FUNCTIONS, kind=SourceKind.QUEUE)
            return
        known = {queue.arn for queue in discovered_queues.queues_read(self._begun)}
        left = [queue for queue in listed if queue.arn not in known]
        for first in range(0, len(left), PAGE):
            self._report(Progress(DiscoveryStage.QUEUES, len(listed) - len(left) + first, len(listed)))
            self._store(self._reader.read_queues(left[first : first + PAGE]), DiscoveryStage.QUEUES)
            yield
        page = QueuePage()
        if not self._begun.scope.is_filtered and any(
            queue.is_unread for queue in discovered_queues.queues_read(self._begun)
        ):  # a queue that cannot be read may name a DLQ, which can be asked
            page = self._reader.listed_sources(listed)
        self._store(page, DiscoveryStage.FUNCTIONS)

    def _destinations(self, stage: DiscoveryStage, marker: str) -> Iterator[None]:
        following = _NEXT[stage]
        while True:
            self._report(Progress(stage))
            try:
                page = self._reader.destinations(_KINDS[stage], marker)
            except QueueUnreachable as error:
                self._store(QueuePage(unread=[str(error)]), following, kind=_KINDS[stage])
                return
            if not page.next_marker:
                self._store(QueuePage(sources=page.sources), following)
                return
            marker = page.next_marker
            self._store(QueuePage(sources=page.sources), stage, marker)
            yield

    def _named(self) -> None:
        self._report(Progress(DiscoveryStage.NAMED))
        if unlisted := discovered_queues.unlisted_dlqs(self._begun):
            self._store(self._reader.read_named(unlisted), DiscoveryStage.NAMED)
        read = discovered_queues.queues_read(self._begun)
        queues = {queue.arn: queue.url for queue in read if queue.is_dlq and queue.has_messages}
        try:
            discovered_queues.store_ages(self._reader.oldest_ages(queues, database_now()) if queues else {})
        except CloudWatchUnreachable as error:
            self._store(QueuePage(unread=[f"The ages of messages are not known. {error}"]), DiscoveryStage.NAMED)

    def _complete(self) -> None:
        unread = {kind for kind, _ in self._unread}
        kinds = [kind for kind in SourceKind if kind.value not in unread]
        if not discovered_queues.complete(
            self._begun, read_kinds=kinds, every=self._conf.discover_every.total_seconds()
        ):
            raise _LeaseLost

    def _store(self, page: QueuePage, stage: DiscoveryStage, marker: str = "", kind: SourceKind | None = None) -> None:
        """Store a page. `kind`: the page says that no source of this kind can be read."""
        sources = [source for source in page.sources if source.source_arn not in self._own]
        if self._begun.scope.is_filtered:  # functions and others may name any queue
            candidates = {queue.arn for queue in page.queues}
            candidates |= {queue.arn for queue in discovered_queues.queues_read(self._begun)}
            sources = [source for source in sources if source.dlq_arn in candidates]
        known = {sentence for _, sentence in self._unread}
        said = [(kind.value if kind else "", one) for one in dict.fromkeys(page.unread) if one not in known]
        unread = said if kind else said[: max(_MOST_UNREAD - len(self._unread), 0)]
        self._unread += unread
        stored = LookPage(queues=page.queues, sources=sources, stage=stage, marker=marker, unread=unread)
        if not discovered_queues.store_page(self._begun, stored):
            raise _LeaseLost

    def _renew(self) -> None:
        if not discovery_scopes.keep_lease(self._begun):
            raise _LeaseLost
