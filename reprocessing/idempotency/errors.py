"""Define the package's exceptions; each message says what to do."""

from __future__ import annotations


class IdempotencyError(Exception):
    """Base of the package's exceptions."""


class InProgress(IdempotencyError):
    """Another worker holds the claim. Do not acknowledge the message, or ask again in `retry_after` seconds."""

    def __init__(self, space: str, *, retry_after: float) -> None:
        self.retry_after = retry_after
        super().__init__(
            f'Another worker does the same work (space "{space}"). Its claim ends within {retry_after:.3g} s. Do not '
            "acknowledge the message, so that it is delivered again."
        )


class PayloadConflict(IdempotencyError):
    """A key was used before for another payload."""


class ClaimLost(IdempotencyError):
    """The lease ended before the work did, and another worker took the claim."""


class ClaimInsideTransaction(IdempotencyError):
    """A claim inside a transaction is invisible to others until the commit."""


class InvalidClaim(IdempotencyError):
    """A key, a payload or a lease is not valid."""


class ResultIsNotJson(IdempotencyError):
    """A result is not JSON, so it cannot be kept."""


class InvalidIdempotencySettings(IdempotencyError):
    """settings.REDRIVE_IDEMPOTENCY has an unknown name or an invalid value."""
