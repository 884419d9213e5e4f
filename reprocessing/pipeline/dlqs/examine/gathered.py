"""What SQS and Postgres know of a dlq that is to be watched, gathered before anything is judged."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import Q

from reprocessing.domain.errors import QueueIsOutOfReach
from reprocessing.domain.message import arn as arns
from reprocessing.gateways.sqs import Depth, Move, QueueAddress, depth, moves, origins_of
from reprocessing.models import Attempt, DeadLetter, DeadLetterQueue, Target
from reprocessing.models.attempt import OUTCOME_IS_OPEN
from reprocessing.pipeline.dlqs.examine.default_targets import Nowhere, Ways
from reprocessing.pipeline.dlqs.examine.queue_attributes import Seen, see
from reprocessing.store.ordering.lanes import clock
from reprocessing.store.runs import plan_figures
from reprocessing.store.runs.plan_figures import Prospect, Share
from reprocessing.store.targets import targets

# What a run has, and has begun with: on its lane, or to come onto it (see `instalments`).
_PLACED = Q(state__in=("waiting", "sending", "awaiting")) | Q(state="captured", run__state__in=("running", "paused"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """All of it.

    Attributes:
        origins: the queues that messages die in, found or named by URL, by ARN.
        named: the ARNs of those that a person named, and of what else failed to take letters.
        ways: where the letters of each origin go, those of before included: ARNs of targets by those of origins.
        nowhere: the origins whose letters cannot go back by themselves.
        queues: the queues among the targets, by ARN; those of before that nobody named this time are left out.
        others: the other targets, by ARN, perhaps without a row.
        moves: native redrives under way; None: SQS did not say.
        parking: the SQS parking queue that was asked for.
        silences: what SQS did not say, and why.
        now: the database's.
        row: the dlq as it was added before; None: it is new.
        targets: rows of the targets that are there, by ARN.
        dlqs: every dlq that is watched, by ARN.
        on_lanes: letters that a run has put on their lanes, and that have not come to an end.
        unsettled: sent letters, of any dlq, that wait for what a capture of this one proves.
    """

    dlq: Seen
    depth: Depth
    origins: dict[str, Seen]
    named: list[str]
    ways: dict[str, str]
    nowhere: list[Nowhere]
    queues: dict[str, Seen]
    others: dict[str, Target]
    moves: list[Move] | None
    parking: Seen | None
    silences: dict[str, str]
    now: datetime
    row: DeadLetterQueue | None
    targets: dict[str, Target]
    dlqs: dict[str, DeadLetterQueue]
    on_lanes: int = 0
    unsettled: int = 0
    prospect: Prospect | None = None
    shares: list[Share] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What is to be looked at.

    Attributes:
        name: of the dlq.
        url: its queue's; None: the one it was added with.
        role: the one under which it is used; None: as before.
        origins: URLs of queues whose messages die into it, besides those that SQS names; or ARNs of what failed.
        to: where letters of the named origins go instead of back; where none is named, those of all.
        takes_back: they go back to where they died, though somebody said otherwise before.
        parking_url: of the SQS parking queue; empty: none.
    """

    name: str
    url: str | None = None
    role: str | None = None
    origins: tuple[str, ...] = ()
    to: Target | None = None
    takes_back: bool = False
    parking_url: str = ""


def look(ask: Ask) -> Sight:
    """Ask SQS and Postgres. Nothing is received from any queue.

    Raises:
        QueueIsOutOfReach: a queue that must be known could not be asked.
    """
    row = DeadLetterQueue.objects.filter(name=ask.name).select_related("default_origin").first()
    role = ask.role if ask.role is not None else (row.role_arn if row else "")
    dlq = see(QueueAddress.of(ask.url or (row.url if row else ""), role))
    silences: dict[str, str] = {}
    try:
        found = origins_of(dlq.address)
    except QueueIsOutOfReach as error:
        found, silences["origins"] = [], str(error)
    named = {source: arns.read(source) or see(QueueAddress.of(source, role)) for source in ask.origins}
    queues = [named_one for named_one in named.values() if isinstance(named_one, Seen)]
    queues += [see(QueueAddress.of(one, role)) for one in found if one not in named]
    try:
        under_way = moves(dlq.facts.arn, role)
    except QueueIsOutOfReach as error:
        under_way, silences["moves"] = None, str(error)
    called = [named_one.facts.arn if isinstance(named_one, Seen) else named_one.text for named_one in named.values()]
    known = {source.arn: source.target for source in row.origins.select_related("target")} if row else {}
    ways = Ways(ask.to, ask.takes_back, called, role, known)
    ways.trace(queues, [named_one for named_one in named.values() if not isinstance(named_one, Seen)])
    return Sight(
        dlq=dlq,
        depth=depth(dlq.address),
        origins={queue.facts.arn: queue for queue in queues},
        named=called,
        ways=ways.ways,
        nowhere=ways.nowhere,
        queues=ways.queues,
        others=ways.others,
        moves=under_way,
        parking=see(QueueAddress.of(ask.parking_url)) if ask.parking_url else None,
        silences=silences,
        now=clock(),
        row=row,
        targets=targets.known(ways.ways.values()),
        dlqs={one.arn: one for one in DeadLetterQueue.objects.all()},
        **_of_letters(row),
    )


def _of_letters(row: DeadLetterQueue | None) -> dict[str, Any]:
    if row is None:
        return {}
    return {
        "on_lanes": DeadLetter.objects.filter(_PLACED, dlq=row).count(),
        "unsettled": Attempt.objects.filter(OUTCOME_IS_OPEN, target__watched_by=row).count(),
        "prospect": plan_figures.prospect(row.pk),
        "shares": plan_figures.shares(row.pk),
    }
