"""The command `manage.py restore_discarded`, which returns discarded messages to the parking lot."""

from __future__ import annotations

from collections.abc import Iterable

from reprocessing.domain.lifecycle import LetterState
from reprocessing.management.shared.parking_command import Decisions, ParkingCommand
from reprocessing.models import AuditAct
from reprocessing.pipeline.parking_lot import act_on_parked


class Command(ParkingCommand):
    """Return discarded messages to the parking lot, each with the reason for which it was parked before.

    This is possible until the service deletes the messages at the end of their retention. Messages with the
    same idempotency keys that were parked because of the discard stay parked.

    Examples:
        restore_discarded orders --message-id 2f1c9a4e-8d0b-4c1e-9b7a-3f5d6e7a8b9c --reason "discarded by mistake"
        restore_discarded orders --older-than 1h --reason "discarded by mistake" --confirm
    """

    done_word = "restored"
    act = staticmethod(act_on_parked.restore)
    audit_act = AuditAct.RESTORED
    state = LetterState.DISCARDED

    def next_steps(self, decided: Decisions) -> Iterable[str]:
        if decided.done:
            yield "They are parked. To send them: manage.py release_parked NAME --reason WHY --confirm"
