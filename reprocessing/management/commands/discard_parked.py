"""The command `manage.py discard_parked`, which discards parked messages."""

from __future__ import annotations

from reprocessing.management.shared.parking_command import ParkingCommand
from reprocessing.models import AuditAct
from reprocessing.pipeline.parking_lot import act_on_parked


class Command(ParkingCommand):
    """Discard parked messages: they are not sent any more.

    Another message with the idempotency key of a discarded message is not sent either: it is parked, because it may
    ask for the same work. To undo a discard, use restore_discarded, which returns the messages to the parking lot.

    Examples:
        discard_parked orders --parked-for stale --older-than 7d --reason "obsolete"
        discard_parked orders --message-id 2f1c9a4e-8d0b-4c1e-9b7a-3f5d6e7a8b9c --reason "obsolete" --confirm
    """

    done_word = "discarded"
    act = staticmethod(act_on_parked.discard)
    audit_act = AuditAct.DISCARDED
