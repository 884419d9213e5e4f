"""Put letters on the wire. No table is touched here, and no transaction is open."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from reprocessing.conf import Conf
from reprocessing.domain import marks
from reprocessing.domain.envelope import Departure, unpack
from reprocessing.domain.identity import deduplication_id
from reprocessing.domain.verdict import Outcome
from reprocessing.models import Target
from reprocessing.models.intent import Intended
from reprocessing.sqs import QueueAddress, send


def letters(
    intended: Sequence[Intended],
    targets: dict[int, Target],
    *,
    conf: Conf,
    dlqs: dict[int, str],
    may_start: Callable[[int], bool],
) -> dict[int, Outcome]:
    """Send letters whose intent is committed; every attempt's outcome by its id. Raises nothing of AWS's.

    Args:
        intended: the letters.
        targets: by id, those they go to.
        conf: the names of the marks.
        dlqs: the names of the dlqs by id: a letter says where it was reprocessed from.
        may_start: asked with the target's id before every request; where it says no, letters are not sent.
    """
    outcomes: dict[int, Outcome] = {}
    for target_id in sorted({one.target_id for one in intended}):
        target = targets[target_id]
        leaving = [_departure(one, target, conf, dlqs) for one in intended if one.target_id == target_id]

        def still(which: int = target_id) -> bool:
            return may_start(which)

        address = QueueAddress(url=target.url, region=target.region)
        outcomes |= send(address, leaving, may_start=still, largest=target.size_limit)
    return outcomes


def _departure(one: Intended, target: Target, conf: Conf, dlqs: dict[int, str]) -> Departure:
    """The letter as it was, with the declared additions, where there is room for them."""
    own = unpack(bytes(one.attributes))
    body = bytes(one.body)
    mark = marks.Mark(one.public_id, one.no)
    added = marks.marks(
        conf.marks,
        mark,
        idempotency_key=one.idempotency_key or one.message_id,
        message_id=one.message_id,
        reprocessed_from=dlqs[one.dlq_id],
    )
    attributes, _ = marks.addressed(own, added, conf.marks, space=target.size_limit - len(body))
    return Departure(
        attempt=one.attempt_id,
        body=body,
        attributes=attributes,
        group_id=one.system.get("MessageGroupId") or (one.message_id if target.fifo else None),
        deduplication_id=deduplication_id(one.public_id, one.epoch) if target.fifo else None,
        trace_header=one.system.get("AWSTraceHeader"),
    )
