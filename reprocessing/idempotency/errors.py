"""Define the package's exceptions. The text of each exception says what to do."""

from __future__ import annotations


class IdempotencyError(Exception):
    """Base of the package's exceptions."""


class InProgress(IdempotencyError):
    """Another worker has the claim. Do not acknowledge the message, or try again in `retry_after` seconds."""

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
    """A key was claimed inside a transaction, where other workers cannot see the claim until the commit."""


class InvalidClaim(IdempotencyError):
    """A key, a payload or a lease is not valid."""


class ResultIsNotJson(IdempotencyError):
    """A result is not JSON, so it cannot be kept."""


class InvalidIdempotencySettings(IdempotencyError):
    """settings.REDRIVE_IDEMPOTENCY has an unknown name or an invalid value."""
