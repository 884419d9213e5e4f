"""Send notices to a DLQ's SQS parking queue: which letters were parked, and which have left the parking lot."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from reprocessing.domain.message.envelope import Attribute, OutgoingMessage, unpack_attributes
from reprocessing.domain.message.redrive_attributes import MarkNames, attributes_to_send
from reprocessing.domain.replay.verdicts import Refused, Taken
from reprocessing.gateways.sqs import LARGEST, QueueAddress, send
from reprocessing.models import DeadLetterQueue
from reprocessing.models.system import ParkingEvent
from reprocessing.store.maintenance.parking_queue_outbox import PendingMessage

#: Attributes of a notice, in addition to the letter's attributes.
LETTER, STATUS, REASON = "RedriveLetter", "RedriveStatus", "RedriveReason"
_OF_NO_ATTEMPT = MarkNames(redrive=None, idempotency_key=None, message_id=None, reprocessed_from=None)


def send_notices(dlq: DeadLetterQueue, owed: Sequence[PendingMessage], *, may_start: Callable[[], bool]) -> list[int]:
    """Send notices to a DLQ's parking queue, in order: that a letter was parked, or that it left the parking lot.

    Return the ids of notices that need not be sent again: SQS accepted them, or can never accept them.

    When a letter is parked, a copy of the letter is sent. When the letter leaves the parking lot, a short message with
    its id is sent, because the copy in the parking queue cannot be found and deleted. `may_start`: several threads call
    it before every request; if it returns False, the request is not sent.
    """
    address = QueueAddress.of(dlq.parking_url)
    outcomes = send(address, [_notice_message(owed_one, fifo=address.fifo) for owed_one in owed], may_start=may_start)
    return [
        owed_one.notice_id
        for owed_one in owed
        if isinstance(outcome := outcomes[owed_one.notice_id], Taken)
        or (isinstance(outcome, Refused) and outcome.poison)
    ]


def _notice_message(notice: PendingMessage, *, fifo: bool) -> OutgoingMessage:
    said = {
        LETTER: Attribute("String", str(notice.public_id)),
        STATUS: Attribute(
            "String", notice.parking_event if notice.parking_event == ParkingEvent.PARKED else notice.state
        ),
        REASON: Attribute("String", notice.reason or "none"),
    }
    parked = notice.parking_event == ParkingEvent.PARKED
    own = unpack_attributes(bytes(notice.attributes)) if parked else {}
    body = bytes(notice.body) if parked else f'{{"letter": "{notice.public_id}", "status": "{notice.state}"}}'.encode()
    attributes, _ = attributes_to_send(own, said, _OF_NO_ATTEMPT, space=LARGEST - len(body))
    return OutgoingMessage(
        attempt=notice.notice_id,
        body=body,
        attributes=attributes,
        group_id=str(notice.public_id) if fifo else None,
        deduplication_id=f"{notice.public_id}-{notice.notice_id}" if fifo else None,
    )
