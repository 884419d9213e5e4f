"""Define the package's exceptions. The text of each exception says what to do."""

from __future__ import annotations


class IdempotencyError(Exception):
    """Base of the package's exceptions."""


class InProgress(IdempotencyError):
    """Another worker has the claim. Leave the message unacknowledged, or try again in `retry_after` seconds."""

    def __init__(self, space: str, *, retry_after: float) -> None:
        self.retry_after = retry_after
        super().__init__(
            f'Another worker does the same work (space "{space}"). Its claim ends within {retry_after:.3g} s. Do not '
            "acknowledge the message, so that it is delivered again."
        )


class PayloadConflict(IdempotencyError):
    """A key was used before for another payload. Different work needs a different key."""


class ClaimLost(IdempotencyError):
    """The lease of a worker's claim ended before the work was done, and another worker took the claim."""


class ClaimInsideTransaction(IdempotencyError):
    """A key was claimed inside a transaction, where other workers cannot see the claim until the commit."""


class InvalidClaim(IdempotencyError):
    """An argument of `once` or `idempotent`, such as the key or the payload, is not valid."""


class ResultIsNotJson(IdempotencyError):
    """A result is not JSON of at most 1 MiB, so it cannot be stored. The work is recorded as done."""


class InvalidIdempotencySettings(IdempotencyError):
    """settings.REDRIVE_IDEMPOTENCY has an unknown name or an invalid value."""
