"""`manage.py restore_discarded`: discarded letters are parked again, since a person says so."""

from __future__ import annotations

from collections.abc import Iterable

from reprocessing.domain.lifecycle import LetterState
from reprocessing.management.shared.parking_command import Decided, ParkingCommand
from reprocessing.pipeline.parking_lot import act_on_parked


class Command(ParkingCommand):
    """Restores discarded letters."""

    help = (
        "Parks discarded letters again, for what they were parked for, until they are forgotten with the rest of "
        "history. Their idempotency keys are free again; letters that were parked as their twins stay parked."
    )
    deed = "restored"
    act = staticmethod(act_on_parked.restore)
    state = LetterState.DISCARDED

    def after(self, decided: Decided) -> Iterable[str]:
        """What follows from it."""
        if decided.done:
            yield "They are parked: release_parked replays them."
