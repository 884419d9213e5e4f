"""Read from AWS the queues of one account and region, and the resources that send their failed messages to queues."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, TypeVar

from reprocessing.domain.dlqs.discovery import FailureSource, QueueReading, Scope, SourceKind
from reprocessing.domain.errors import QueueUnreachable
from reprocessing.domain.message.arn import ResourceKind, read
from reprocessing.gateways.aws.request_pace import RequestPace
from reprocessing.gateways.aws.request_threads import run_with_heartbeat
from reprocessing.gateways.aws_services.cloudwatch_get import oldest_ages
from reprocessing.gateways.aws_services.failure_destinations import (
    DestinationPage,
    ReadPage,
    function_destinations,
    rule_destinations,
    subscription_destinations,
)
from reprocessing.gateways.sqs import QueueAddress, is_of_sqs, locate, sources_of
from reprocessing.gateways.sqs.queue_attributes import describe_with_depth, is_gone
from reprocessing.gateways.sqs.queue_listing import list_queues, tags_of

Item = TypeVar("Item")
Result = TypeVar("Result")

#: Most requests to SQS at a time.
THREADS: Final = 16
#: Seconds between two calls of `heartbeat` while requests are in progress.
HEARTBEAT_EVERY: Final = 3.0

_NOT_READ: Final = "Its sources name this queue, but the role of this discovery cannot read it."
_CURE_IF_GONE: Final = (
    "If it was deleted, correct the settings of its sources: they lose failed messages. If it is in another account, "
    "run: manage.py discover_dlqs --region REGION --role ARN"
)

_READERS: Final[Mapping[SourceKind, ReadPage]] = {
    SourceKind.FUNCTION: function_destinations,
    SourceKind.SUBSCRIPTION: subscription_destinations,
    SourceKind.RULE: rule_destinations,
}


@dataclass(frozen=True, slots=True)
class QueuePage:
    """What was read about some queues: their attributes, and their sources.

    A source is a resource whose failed messages go to a queue. `unread`: one sentence for each thing that could not be
    read.
    """

    queues: list[QueueReading] = field(default_factory=list)
    sources: list[FailureSource] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ScopeReader:
    """Reads the queues and failure destinations of one scope (an account and region) from AWS.

    `heartbeat`: called every 3 s during requests, to renew the scan's lease.
    """

    scope: Scope
    pace: RequestPace
    heartbeat: Callable[[], None]

    def queues(self) -> list[QueueAddress]:
        """Return the addresses of the queues whose names begin with the scope's prefix.

        Whether a queue has the scope's tags is checked later, by `read_queues`.

        Raises:
            QueueUnreachable: SQS refused or did not answer.
        """
        scope = self.scope
        (found,) = self._parallel(
            lambda prefix: self.pace.request(lambda: list_queues(scope.region, scope.role, prefix=prefix)),
            [scope.prefix],
        )
        return found

    def read_queues(self, addresses: Sequence[QueueAddress]) -> QueuePage:
        """Return the attributes of those queues that match the scope's tags, and the DLQ that each queue names.

        If the scope has a filter (prefix or tags), a source queue may not match the filter. So SQS is also asked for
        the source queues of each queue. Queues that were deleted after they were listed are left out.
        """
        return _joined(self._parallel(self._read_queue, addresses))

    def listed_sources(self, addresses: Sequence[QueueAddress]) -> QueuePage:
        """Return the source queues that SQS lists for each of these queues."""
        return _joined(self._parallel(self._listed_sources, addresses))

    def read_named(self, arns: Sequence[str]) -> QueuePage:
        """Return the attributes of queues that sources name as their DLQ, but that SQS did not list."""
        return _joined(self._parallel(self._read_named, arns))

    def destinations(self, kind: SourceKind, marker: str) -> DestinationPage:
        """Return one page of functions, subscriptions or rules, each with the queue for its failed messages.

        `marker`: where the page begins.

        Raises:
            QueueUnreachable: AWS refused or did not answer.
        """
        read_page = _READERS[kind]
        (found,) = self._parallel(
            lambda begin: read_page(self.scope.region, self.scope.role, begin, self.pace), [marker]
        )
        return found

    def oldest_ages(self, queues: Mapping[str, str], now: datetime) -> dict[str, float]:
        """Return the age (s) of the oldest message of each queue, by the queue's ARN. CloudWatch knows these ages.

        `queues`: URLs by ARN. Queues without an age in CloudWatch are left out. If a queue is not in AWS, as in tests,
        the result is empty.

        Raises:
            CloudWatchUnreachable: CloudWatch refused or did not answer.
        """
        scope = self.scope
        addresses = {arn: QueueAddress(url, scope.region, scope.role) for arn, url in queues.items()}
        if not all(is_of_sqs(url) for url in queues.values()):
            return {}
        (ages,) = self._parallel(
            lambda batch: self.pace.request(lambda: oldest_ages(scope.region, batch, role=scope.role, now=now)),
            [list(addresses.values())],
        )
        return {arn: ages[address.url] for arn, address in addresses.items() if address.url in ages}

    def _parallel(self, act: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        return run_with_heartbeat(act, items, THREADS, beat=self.heartbeat, every=HEARTBEAT_EVERY)

    def _read_queue(self, address: QueueAddress) -> QueuePage:
        try:
            tags = self.pace.request(lambda: tags_of(address)) if self.scope.tags else None
            if not self.scope.covers(address.arn, tags):
                return QueuePage()
            facts, depth = self.pace.request(lambda: describe_with_depth(address))
        except QueueUnreachable as error:
            if is_gone(error):
                return QueuePage()
            return QueuePage([QueueReading(arn=address.arn, url=address.url, last_error=str(error))])
        reading = QueueReading(
            arn=facts.arn, url=address.url, retention=int(facts.retention.total_seconds()), visible=depth.visible,
            in_flight=depth.in_flight, tags=tags,
        )  # fmt: skip
        if self.scope.is_filtered:
            listed = self._listed_sources(address)
            if listed.unread:  # the queue then counts as unread, and its stored sources stay
                reading = QueueReading(arn=reading.arn, url=reading.url, tags=reading.tags, last_error=listed.unread[0])
            return _joined([QueuePage([reading]), listed])
        named = read(facts.redrive.target_arn) if facts.redrive else None
        if named is None or named.named is not ResourceKind.QUEUE:
            return QueuePage([reading])
        return QueuePage([reading], [FailureSource(named.text, facts.arn, SourceKind.QUEUE)])

    def _listed_sources(self, address: QueueAddress) -> QueuePage:
        try:
            urls = self.pace.request(lambda: sources_of(address))
        except QueueUnreachable as error:
            return QueuePage(unread=[] if is_gone(error) else [str(error)])
        sources = [QueueAddress(url, address.region).arn for url in urls]
        return QueuePage(sources=[FailureSource(address.arn, source, SourceKind.QUEUE) for source in sources])

    def _read_named(self, arn: str) -> QueuePage:
        try:
            page = self._read_queue(self.pace.request(lambda: locate(arn, self.scope.role)))
            return QueuePage(page.queues)
        except QueueUnreachable as error:
            why = f"{_NOT_READ} {error}" if not is_gone(error) else f"{_NOT_READ} {_CURE_IF_GONE}"
            return QueuePage([QueueReading(arn=arn, last_error=why)])


def _joined(pages: Iterable[QueuePage]) -> QueuePage:
    joined = QueuePage()
    for page in pages:
        joined.queues.extend(page.queues)
        joined.sources.extend(page.sources)
        joined.unread.extend(page.unread)
    return joined
