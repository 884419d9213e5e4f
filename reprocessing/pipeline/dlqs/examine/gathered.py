"""Read the state of a DLQ from SQS and PostgreSQL, for the checks that examine the DLQ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from reprocessing.domain.errors import QueueUnreachable
from reprocessing.domain.lifecycle import LetterState
from reprocessing.domain.message import arn as arns
from reprocessing.gateways.sqs import Depth, Move, QueueAddress, active_moves, depth, sources_of
from reprocessing.models import Attempt, DeadLetterQueue, Letter, Run, Target
from reprocessing.models.attempt import AWAITS_OUTCOME
from reprocessing.models.run import RunState
from reprocessing.pipeline.dlqs.examine.default_targets import NoTarget, SourceTargets
from reprocessing.pipeline.dlqs.examine.queue_attributes import DescribedQueue, describe_queue
from reprocessing.store.maintenance import counters
from reprocessing.store.ordering.lanes import database_now
from reprocessing.store.runs import plan_figures
from reprocessing.store.runs.plan_figures import PlanFigures, TargetFigures
from reprocessing.store.targets import targets

_ON_LANES = frozenset({LetterState.WAITING, LetterState.SENDING, LetterState.AWAITING})


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """The state of a DLQ, as SQS and PostgreSQL returned it.

    Attributes:
        dlq: the DLQ, with its attributes in SQS.
        depth: SQS's counts of the DLQ's messages.
        sources: the source queues by ARN: those that SQS lists, and those whose URL a person gave.
        named: the ARNs of the sources that a person named.
        targets_by_source: the ARN of each source's target, by the source's ARN. Sources are included that were stored
            before, but are not named any more (former sources).
        without_target: the sources to which messages cannot be redriven.
        queues: the targets that are queues, by ARN; without targets of former sources.
        other_targets: the targets that are not queues, by ARN; they may not be stored yet.
        moves: AWS's own redrives in progress; None: SQS did not list them.
        parking: the parking queue; None: none was given.
        unknown: what SQS did not return, with the reasons.
        now: PostgreSQL's time.
        row: the stored DLQ; None: the DLQ is new.
        targets: stored targets, by ARN.
        dlqs: every watched DLQ, by ARN.
        on_lanes: number of the DLQ's unfinished letters that belong to a run.
        unsettled: number of sent letters, of any DLQ, whose outcome only a capture of this DLQ will show.
        prospect: counts of the letters that a run would send; None: the DLQ is new.
        shares: counts of the letters that a run would send, for each target.
    """

    dlq: DescribedQueue
    depth: Depth
    sources: dict[str, DescribedQueue]
    named: list[str]
    targets_by_source: dict[str, str]
    without_target: list[NoTarget]
    queues: dict[str, DescribedQueue]
    other_targets: dict[str, Target]
    moves: list[Move] | None
    parking: DescribedQueue | None
    unknown: dict[str, str]
    now: datetime
    row: DeadLetterQueue | None
    targets: dict[str, Target]
    dlqs: dict[str, DeadLetterQueue]
    on_lanes: int = 0
    unsettled: int = 0
    prospect: PlanFigures | None = None
    shares: list[TargetFigures] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The options that a person gave for a DLQ.

    Attributes:
        name: the DLQ's name.
        url: the DLQ's URL; None: the stored URL.
        sources: URLs of source queues that SQS does not name, or ARNs of other sources (a function, a rule).
        to: the target of messages of `sources`, or of all sources if `sources` is empty; None: no target was given.
        takes_back: messages go back to their source, even if another target is stored for the source.
        dlq: the DLQ's settings by the names of the row's fields (see dlq_proposal.DlqProposal); missing fields keep
            their value.
        target: settings for the targets of all sources of the DLQ, by field.
        teams: names of the groups whose members see the DLQ; None: no change.
        targets: settings for single targets, by ARN, and then by field.
        ways: the targets of single sources, by the source's ARN, which replace the stored targets.
        default_source: ARN of the source of messages that do not name their source.
        names_default: if `sources` has a single source, this source becomes the default source.
    """

    name: str
    url: str | None = None
    sources: tuple[str, ...] = ()
    to: Target | None = None
    takes_back: bool = False
    dlq: Mapping[str, Any] = field(default_factory=dict)
    target: Mapping[str, Any] = field(default_factory=dict)
    teams: tuple[str, ...] | None = None
    targets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    ways: Mapping[str, Target] = field(default_factory=dict)
    default_source: str | None = None
    names_default: bool = True


def observe(wanted: Wanted) -> Observed:
    """Ask SQS and PostgreSQL about a DLQ and its queues. Nothing is received from any queue.

    Raises:
        QueueUnreachable: SQS did not answer about the DLQ, a source queue or the parking queue.
    """
    row = DeadLetterQueue.objects.filter(name=wanted.name).select_related("default_source").first()
    role = wanted.dlq.get("role_arn", row.role_arn if row else "")
    parking_url = wanted.dlq.get("parking_url")
    dlq = describe_queue(QueueAddress.of(wanted.url or (row.url if row else ""), role))
    silences: dict[str, str] = {}
    try:
        found = sources_of(dlq.address)
    except QueueUnreachable as error:
        found, silences["sources"] = [], str(error)
    named = {source: arns.read(source) or describe_queue(QueueAddress.of(source, role)) for source in wanted.sources}
    queues = [seen for seen in named.values() if isinstance(seen, DescribedQueue)]
    queues += [describe_queue(QueueAddress.of(url, role)) for url in found if url not in named]
    try:
        under_way = active_moves(dlq.facts.arn, role)
    except QueueUnreachable as error:
        under_way, silences["moves"] = None, str(error)
    called = [source.facts.arn if isinstance(source, DescribedQueue) else source.text for source in named.values()]
    known = {source.arn: source.target for source in row.sources.select_related("target")} if row else {}
    known |= wanted.ways
    ways = SourceTargets(wanted.to, wanted.takes_back, called, role, known)
    ways.trace(queues, [source for source in named.values() if not isinstance(source, DescribedQueue)])
    return Observed(
        dlq=dlq, depth=depth(dlq.address), sources={queue.facts.arn: queue for queue in queues}, named=called,
        targets_by_source=ways.ways, without_target=ways.nowhere, queues=ways.queues, other_targets=ways.others,
        moves=under_way,
        parking=describe_queue(QueueAddress.of(parking_url)) if parking_url else None, unknown=silences,
        now=database_now(), row=row,
        targets=targets.find_targets(ways.ways.values()),
        dlqs={known.arn: known for known in DeadLetterQueue.objects.all()},
        **_of_letters(row),
    )  # fmt: skip


def _of_letters(row: DeadLetterQueue | None) -> dict[str, Any]:
    if row is None:
        return {}
    return {
        "on_lanes": _on_lanes(row.pk),
        "unsettled": Attempt.objects.filter(AWAITS_OUTCOME, target__watched_by=row).count(),
        "prospect": plan_figures.plan_figures_of(row.pk),
        "shares": plan_figures.target_figures(row.pk),
    }


def _on_lanes(dlq: int) -> int:
    """Return the number of unfinished letters that belong to a run: letters on lanes, and letters of a planned run.

    This function reads stored counts. A query of the letters would be slow, since PostgreSQL's planner expects few
    letters on lanes, and would then read all letters.
    """
    placed = sum(count.n for count in counters.counts_by_state(dlq) if count.state in _ON_LANES)
    runs = list(Run.objects.filter(dlq=dlq, state__in=(RunState.RUNNING, RunState.PAUSED)).values_list("pk", flat=True))
    return placed + Letter.objects.filter(run__in=runs, state=LetterState.CAPTURED).count()
