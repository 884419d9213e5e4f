"""A parking lot for the commands to decide about."""

from __future__ import annotations

from datetime import datetime

from reprocessing.domain.lifecycle import LetterState
from reprocessing.models import DeadLetterQueue, Letter
from tests.reprocessing.commands.stock import add_lane, add_letter, add_source, ago


class Lot:
    """Parked letters of one dlq: by two reasons, three keys, and two ages."""

    def __init__(self, dlq: DeadLetterQueue) -> None:
        self.dlq, self.source = dlq, add_source(dlq)
        self.old = self.park("a", "refused", since=ago(hours=5))
        self.young = self.park("a", "refused", since=ago(minutes=5))
        self.spent = self.park("b", "attempts_spent", since=ago(minutes=4))

    def park(self, key: str, reason: str, *, since: datetime) -> Letter:
        values = {"planned": True, "sequence": "1", "lane": add_lane(self.source), "ordering_key": key}
        return add_letter(self.source, LetterState.PARKED, reason=reason, finished_at=since, body=b"secret", **values)

    def states(self) -> list[str]:
        """Of old, young and spent."""
        found = dict(Letter.objects.values_list("pk", "state"))
        return [found[one.pk] for one in (self.old, self.young, self.spent)]
