"""`manage.py discard_parked`: parked letters are given up, since a person says so."""

from __future__ import annotations

from reprocessing.management.shared.parking_command import ParkingCommand
from reprocessing.pipeline.parking_lot import act_on_parked


class Command(ParkingCommand):
    """Discards parked letters."""

    help = "Gives up parked letters: they are never sent. Letters with the same idempotency key are parked later on."
    deed = "discarded"
    act = staticmethod(act_on_parked.discard)
