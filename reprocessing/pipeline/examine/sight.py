"""What SQS and Postgres know of a dlq that is to be watched, gathered before anything is judged."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from reprocessing.domain.errors import QueueIsOutOfReach
from reprocessing.models import Attempt, DeadLetter, DeadLetterQueue, Target, prospect
from reprocessing.models.lanes import clock
from reprocessing.models.prospect import Prospect, Share
from reprocessing.models.target import FORTNIGHT
from reprocessing.sqs import Depth, Move, QueueAddress, QueueFacts, depth, describe, moves, origins_of

_ON_LANES = ("waiting", "sending", "awaiting")


@dataclass(frozen=True, slots=True)
class Seen:
    """One queue, as SQS describes it."""

    address: QueueAddress
    facts: QueueFacts

    @property
    def window(self) -> timedelta:
        """How long a letter that the consumer fails on can take from being received here to its dead-letter queue.

        SQS moves it with the receive after the last allowed one. Every receive may hide it for the visibility
        timeout; and the one that moves it comes when the consumer, busy with others for up to as long, asks again.
        After a fortnight SQS has dropped it.
        """
        receives = self.facts.redrive.max_receives if self.facts.redrive else 1
        return min(max(self.facts.visibility * (receives + 1), timedelta(seconds=1)), timedelta(seconds=FORTNIGHT))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """All of it.

    Attributes:
        origins: the queues that messages die in, found or named, by ARN.
        named: the ARNs of those that a person named.
        moves: native redrives under way; None: SQS did not say.
        parking: the SQS parking queue that was asked for.
        silences: what SQS did not say, and why.
        now: the database's.
        row: the dlq as it was added before; None: it is new.
        targets: rows of the origins' targets that are there, by ARN.
        dlqs: every dlq that is watched, by ARN.
        on_lanes: letters that a run has put on their lanes, and that have not come to an end.
        unsettled: sent letters, of any dlq, that wait for what a capture of this one proves.
    """

    dlq: Seen
    depth: Depth
    origins: dict[str, Seen]
    named: list[str]
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


def look(name: str, *, url: str | None, origins: tuple[str, ...], parking_url: str) -> Sight:
    """Ask SQS and Postgres. Nothing is received from any queue.

    Args:
        name: of the dlq.
        url: its queue's; None: the one it was added with.
        origins: URLs of queues whose messages die into it, besides those that SQS names.
        parking_url: of the SQS parking queue; empty: none.

    Raises:
        QueueIsOutOfReach: a queue that must be known could not be asked.
    """
    row = DeadLetterQueue.objects.filter(name=name).select_related("default_origin").first()
    dlq = _see(url or (row.url if row else ""))
    silences: dict[str, str] = {}
    try:
        found = origins_of(dlq.address)
    except QueueIsOutOfReach as error:
        found, silences["origins"] = [], str(error)
    named = [_see(one) for one in origins]
    seen = {one.facts.arn: one for one in [*named, *(_see(one) for one in found if one not in origins)]}
    try:
        under_way = moves(dlq.facts.arn)
    except QueueIsOutOfReach as error:
        under_way, silences["moves"] = None, str(error)
    return Sight(
        dlq=dlq,
        depth=depth(dlq.address),
        origins=seen,
        named=[one.facts.arn for one in named],
        moves=under_way,
        parking=_see(parking_url) if parking_url else None,
        silences=silences,
        now=clock(),
        row=row,
        targets={one.arn: one for one in Target.objects.filter(arn__in=seen).select_related("watched_by")},
        dlqs={one.arn: one for one in DeadLetterQueue.objects.all()},
        **_of_letters(row),
    )


def _see(url: str) -> Seen:
    address = QueueAddress.of(url)
    return Seen(address, describe(address))


def _of_letters(row: DeadLetterQueue | None) -> dict[str, Any]:
    if row is None:
        return {}
    return {
        "on_lanes": DeadLetter.objects.filter(dlq=row, state__in=_ON_LANES).count(),
        "unsettled": Attempt.objects.filter(target__watched_by=row, closed_at=None, taken_at__isnull=False).count(),
        "prospect": prospect.prospect(row.pk),
        "shares": prospect.shares(row.pk),
    }
