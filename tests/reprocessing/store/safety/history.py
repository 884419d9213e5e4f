"""Attempts of a run's letters at one target, for the statements of safety."""

from __future__ import annotations

from typing import Any

from django.db.models import F

from reprocessing.models import Attempt, AuditEntry, Breaker, DeadLetterQueue, Letter, Run
from reprocessing.store.ordering.lanes import database_now
from tests.reprocessing.store.stock import Stock

#: Outcomes of attempts: failed, poison, succeeded, returned, returned after a success, not sent, open.
FATES: dict[str, dict[str, Any]] = {
    "x": {"outcome": "refused", "counts_as_failure": True},
    "p": {"outcome": "refused"},
    "v": {"outcome": "accepted", "counts_as_failure": False},
    "r": {"outcome": "returned"},
    "a": {"outcome": "accepted", "counts_as_failure": False},
    "n": {"outcome": "not_sent"},
    "o": {},
}


class History(Stock):
    """An automatic run, whose DLQ allows two attempts."""

    def __init__(self) -> None:
        super().__init__()
        Run.objects.update(kind="automatic", changed_at=None)
        DeadLetterQueue.objects.update(max_attempts=2)

    @property
    def breaker(self) -> Breaker:
        return Breaker.objects.get(target=self.target, rate_class=None)

    def tried(self, fates: str, letter: Letter | None = None, **fields: object) -> list[Attempt]:
        """Create an attempt for each sign, of this letter or each of a new one, in the breaker's present epoch."""
        letters = [letter] * len(fates) if letter else self.more_letters(len(fates))
        return [self._tried(fate, one, **fields) for fate, one in zip(fates, letters, strict=True)]

    def _tried(self, fate: str, letter: Letter, **fields: object) -> Attempt:
        Letter.objects.filter(pk=letter.pk).update(attempts=F("attempts") + 1)
        now = database_now()
        values = {
            "run": self.run, "no": Attempt.objects.filter(letter=letter).count() + 1, "opened_at": now,
            "breaker": self.breaker, "breaker_epoch": self.breaker.epoch,
            "closed_at": None if fate == "o" else now, "returned_at": now if fate in "ra" else None,
        }  # fmt: skip
        return self.attempt(letter, **{**values, **FATES[fate], **fields})

    def resumed(self, *, after: str = "the service", act: str = "resumed") -> None:
        """Have a person resume the run that `after` had paused."""
        AuditEntry.objects.create(
            act=act, run=self.run, by="ann", reason="mended", before={"state": "paused", "by": after}
        )
