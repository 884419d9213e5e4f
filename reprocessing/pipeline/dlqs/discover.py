"""Scan an account and region (a *scope*) for DLQs, page by page. An interrupted scan continues with its next page."""

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
from reprocessing.store.dlqs import discovery_scopes, scanned_queues
from reprocessing.store.dlqs.discovery_scopes import OpenScan
from reprocessing.store.dlqs.scanned_queues import ScanPage
from reprocessing.store.ordering.lanes import database_now

#: How many queues are read and stored at once, as one page.
PAGE: Final = 200
#: Most sentences that a scan stores about what could not be read.
_MOST_UNREAD: Final = 20
_KINDS: Final = {
    DiscoveryStage.FUNCTIONS: SourceKind.FUNCTION,
    DiscoveryStage.SUBSCRIPTIONS: SourceKind.SUBSCRIPTION,
    DiscoveryStage.RULES: SourceKind.RULE,
}
_NEXT: Final = dict(zip(list(DiscoveryStage), list(DiscoveryStage)[1:], strict=False))


class ScanResult(StrEnum):
    """How a call of `scan_scope` ended."""

    COMPLETE = "complete"
    STOPPED = "stopped"  #: the next call continues the scan
    BUSY = "busy"  #: another process scans the scope


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a scan, for people: what it reads now (`stage`).

    In the stage `queues` it also says how many queues SQS listed, and how many of these were read (`done`).
    """

    stage: DiscoveryStage
    done: int = 0
    listed: int = 0


class _LeaseLost(Exception):
    """Raised to end a scan: another process has leased its scope, or the scope was deleted."""


def scan_scope(
    scope_id: int, conf: Conf, *, dice: Callable[[], float], stop: Callable[[], bool] = lambda: False,
    report: Callable[[Progress], None] = lambda _: None,
) -> ScanResult:  # fmt: skip
    """Scan a scope for DLQs, and store each page when it is read; return how this call ended.

    If AWS refuses to list something, the reason is stored, and the scan continues.

    Args:
        scope_id: the id of the scope's row.
        conf: the settings.
        dice: returns random numbers from 0 to below 1, for backoff.
        stop: returns whether to stop after the current page.
        report: called before each page.
    """
    begun = discovery_scopes.begin_scan(scope_id)
    if begun is None:
        return ScanResult.BUSY
    try:
        for _ in _Scan(begun, conf, dice, report).pages():
            if stop():
                discovery_scopes.release(begun)
                return ScanResult.STOPPED
    except _LeaseLost:
        return ScanResult.BUSY
    except BaseException:
        discovery_scopes.release(begun)
        raise
    return ScanResult.COMPLETE


def scan_due_scopes(conf: Conf, *, dice: Callable[[], float], seconds: float) -> bool:
    """Scan the scopes whose next scan is due, for about `seconds`. A scope is an account and region.

    Return False if a scan was stopped because the time was over.
    """
    until = time.monotonic() + seconds
    for scope_id in discovery_scopes.due_scopes():
        if scan_scope(scope_id, conf, dice=dice, stop=lambda: time.monotonic() >= until) is ScanResult.STOPPED:
            return False
    return True


class _Scan:
    """A scan in progress. This process has the lease of the scope."""

    def __init__(
        self, begun: OpenScan, conf: Conf, dice: Callable[[], float], report: Callable[[Progress], None]
    ) -> None:
        self._begun, self._conf, self._report = begun, conf, report
        self._reader = ScopeReader(begun.scope, RequestPace(dice), self._renew)
        self._own = frozenset(QueueAddress.of(url).arn for url in conf.own_queues)
        self._unread = [(kind, sentence) for kind, sentence in begun.unread]

    def pages(self) -> Iterator[None]:
        """Read queues and sources from AWS, page by page. Yield when a page is stored, so that the caller can stop."""
        stage: DiscoveryStage | None = DiscoveryStage(self._begun.stage)
        marker = self._begun.marker
        while stage is not None:
            if stage is DiscoveryStage.QUEUES:
                yield from self._read_queues()
            elif stage is DiscoveryStage.NAMED:
                self._read_named_queues()
            else:
                yield from self._read_destinations(stage, marker)
            stage, marker = _NEXT.get(stage), ""
        self._complete()

    def _read_queues(self) -> Iterator[None]:
        try:
            listed = self._reader.queues()
        except QueueUnreachable as error:
            self._store(QueuePage(unread=[str(error)]), DiscoveryStage.FUNCTIONS, kind=SourceKind.QUEUE)
            return
        known = {queue.arn for queue in scanned_queues.queues_read(self._begun)}
        left = [queue for queue in listed if queue.arn not in known]
        for first in range(0, len(left), PAGE):
            self._report(Progress(DiscoveryStage.QUEUES, len(listed) - len(left) + first, len(listed)))
            self._store(self._reader.read_queues(left[first : first + PAGE]), DiscoveryStage.QUEUES)
            yield
        page = QueuePage()
        if not self._begun.scope.is_filtered and any(
            queue.is_unread for queue in scanned_queues.queues_read(self._begun)
        ):  # the redrive policies of these queues are not known, but SQS lists the sources of a DLQ
            page = self._reader.listed_sources(listed)
        self._store(page, DiscoveryStage.FUNCTIONS)

    def _read_destinations(self, stage: DiscoveryStage, marker: str) -> Iterator[None]:
        next_stage = _NEXT[stage]
        while True:
            self._report(Progress(stage))
            try:
                page = self._reader.destinations(_KINDS[stage], marker)
            except QueueUnreachable as error:
                self._store(QueuePage(unread=[str(error)]), next_stage, kind=_KINDS[stage])
                return
            if not page.next_marker:
                self._store(QueuePage(sources=page.sources), next_stage)
                return
            marker = page.next_marker
            self._store(QueuePage(sources=page.sources), stage, marker)
            yield

    def _read_named_queues(self) -> None:
        self._report(Progress(DiscoveryStage.NAMED))
        if unlisted := scanned_queues.unlisted_dlqs(self._begun):
            self._store(self._reader.read_named(unlisted), DiscoveryStage.NAMED)
        read = scanned_queues.queues_read(self._begun)
        queues = {queue.arn: queue.url for queue in read if queue.is_dlq and queue.has_messages}
        try:
            scanned_queues.store_ages(self._reader.oldest_ages(queues, database_now()) if queues else {})
        except CloudWatchUnreachable as error:
            self._store(QueuePage(unread=[f"The ages of messages are not known. {error}"]), DiscoveryStage.NAMED)

    def _complete(self) -> None:
        unread = {kind for kind, _ in self._unread}
        kinds = [kind for kind in SourceKind if kind.value not in unread]
        if not scanned_queues.complete(self._begun, read_kinds=kinds, every=self._conf.discover_every.total_seconds()):
            raise _LeaseLost

    def _store(self, page: QueuePage, stage: DiscoveryStage, marker: str = "", kind: SourceKind | None = None) -> None:
        """Store a page, and where the next page begins (`stage`, `marker`).

        `kind`: the kind of sources that AWS refused to list; None: AWS refused nothing.
        """
        sources = [source for source in page.sources if source.source_arn not in self._own]
        if self._begun.scope.is_filtered:  # leave out sources that name queues outside the filter
            candidates = {queue.arn for queue in page.queues}
            candidates |= {queue.arn for queue in scanned_queues.queues_read(self._begun)}
            sources = [source for source in sources if source.dlq_arn in candidates]
        known = {sentence for _, sentence in self._unread}
        new = [
            (kind.value if kind else "", sentence) for sentence in dict.fromkeys(page.unread) if sentence not in known
        ]
        unread = new if kind else new[: max(_MOST_UNREAD - len(self._unread), 0)]
        self._unread += unread
        stored = ScanPage(queues=page.queues, sources=sources, stage=stage, marker=marker, unread=unread)
        if not scanned_queues.store_page(self._begun, stored):
            raise _LeaseLost

    def _renew(self) -> None:
        if not discovery_scopes.keep_lease(self._begun):
            raise _LeaseLost
