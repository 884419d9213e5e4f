"""The promises that can be broken, each an exception named after it."""

from __future__ import annotations


class IdempotencyError(Exception):
    """A promise was broken; the message says which, and what to do."""


class InProgress(IdempotencyError):
    """Another holds the claim. Leave the message to its queue, or ask again in `retry_after` seconds."""

    def __init__(self, space: str, *, retry_after: float) -> None:
        self.retry_after = retry_after
        super().__init__(
            f'The same work is in progress elsewhere, under the same key of the space "{space}". Its claim ends within '
            f"{retry_after:.3g} s. Do not acknowledge the message: it has to come again."
        )


class PayloadConflict(IdempotencyError):
    """A key was used before for another payload: one of the two would be taken for the other."""


class ClaimWasLost(IdempotencyError):
    """The lease ended before the work did, and another took the claim: the work may have been done twice."""


class ClaimWouldNotBeSeen(IdempotencyError):
    """A claim was asked for where nobody else could see it before the work is over."""


class ClaimIsUnclear(IdempotencyError):
    """A claim was asked for with a key, a payload or a lease that says nothing."""


class ResultIsNotJson(IdempotencyError):
    """What the work returned cannot be kept for those who ask again."""


class SettingsAreUnclear(IdempotencyError):
    """settings.REDRIVE_IDEMPOTENCY has names or values that nobody can act on."""
