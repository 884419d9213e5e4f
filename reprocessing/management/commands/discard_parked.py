"""`manage.py discard_parked`."""

from __future__ import annotations

from reprocessing.management.shared.parking_command import ParkingCommand
from reprocessing.pipeline.parking_lot import act_on_parked


class Command(ParkingCommand):
    """Discard parked messages: they are never sent.

    Messages that arrive later with the same idempotency key are parked. restore_discarded undoes this.

    Examples:
        discard_parked orders --parked-for stale --older-than 7d --reason "obsolete"
        discard_parked orders --message-id 2f1c --reason "obsolete" --confirm
    """

    done_word = "discarded"
    act = staticmethod(act_on_parked.discard)
