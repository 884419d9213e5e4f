"""Tell a dlq's SQS parking queue what was parked, and what has left the parking lot since."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from reprocessing.domain.message.envelope import Attribute, Departure, unpack
from reprocessing.domain.message.redrive_attributes import MarkNames, addressed
from reprocessing.domain.replay.verdicts import Refused, Taken
from reprocessing.gateways.sqs import LARGEST, QueueAddress, send
from reprocessing.models import DeadLetterQueue
from reprocessing.models.system import News
from reprocessing.store.maintenance.parking_queue_outbox import Owed

#: What a copy in the parking queue says of itself, beside its own attributes where there is room.
LETTER, STATUS, REASON = "RedriveLetter", "RedriveStatus", "RedriveReason"
_OF_NO_ATTEMPT = MarkNames(redrive=None, idempotency_key=None, message_id=None, reprocessed_from=None)


def parking_queue(dlq: DeadLetterQueue, owed: Sequence[Owed], *, may_start: Callable[[], bool]) -> list[int]:
    """Send notices in their order; the ids of those that are done with.

    A parked letter goes as a copy of its bytes. A letter that left the lot is marked: a message without its bytes,
    with the same letter id, says so, because SQS takes no message out of the middle of a queue. What the parking queue
    can never take is done with, too; the parking lot itself is in Postgres. `may_start` is asked before every request,
    by several threads.
    """
    address = QueueAddress.of(dlq.parking_url)
    outcomes = send(address, [_departure(owed_one, fifo=address.fifo) for owed_one in owed], may_start=may_start)
    return [
        owed_one.notice_id
        for owed_one in owed
        if isinstance(outcome := outcomes[owed_one.notice_id], Taken)
        or (isinstance(outcome, Refused) and outcome.poison)
    ]


def _departure(notice: Owed, *, fifo: bool) -> Departure:
    said = {
        LETTER: Attribute("String", str(notice.public_id)),
        STATUS: Attribute("String", notice.news if notice.news == News.PARKED else notice.state),
        REASON: Attribute("String", notice.reason or "none"),
    }
    parked = notice.news == News.PARKED
    own = unpack(bytes(notice.attributes)) if parked else {}
    body = bytes(notice.body) if parked else f'{{"letter": "{notice.public_id}", "status": "{notice.state}"}}'.encode()
    attributes, _ = addressed(own, said, _OF_NO_ATTEMPT, space=LARGEST - len(body))
    return Departure(
        attempt=notice.notice_id,
        body=body,
        attributes=attributes,
        group_id=str(notice.public_id) if fifo else None,
        deduplication_id=f"{notice.public_id}-{notice.notice_id}" if fifo else None,
    )
