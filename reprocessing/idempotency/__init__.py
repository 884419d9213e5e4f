"""Do the work of a message only once, even if the message is delivered twice (docs/consumers.md).

This package works in any Django project on PostgreSQL, and imports nothing else of this project. Install it with
`INSTALLED_APPS += ["reprocessing.idempotency"]` and `manage.py migrate`. The redrive service installs it too
(docs/adr/0013).
"""

from __future__ import annotations

from reprocessing.idempotency.claiming import Claim, EarlierResult, once
from reprocessing.idempotency.decorator import idempotent
from reprocessing.idempotency.errors import (
    ClaimInsideTransaction,
    ClaimLost,
    IdempotencyError,
    InProgress,
    InvalidClaim,
    InvalidIdempotencySettings,
    PayloadConflict,
    ResultIsNotJson,
)
from reprocessing.idempotency.naming import message_key, task_key
from reprocessing.idempotency.purging import purge

__all__ = [
    "Claim",
    "ClaimInsideTransaction",
    "ClaimLost",
    "EarlierResult",
    "IdempotencyError",
    "InProgress",
    "InvalidClaim",
    "InvalidIdempotencySettings",
    "PayloadConflict",
    "ResultIsNotJson",
    "idempotent",
    "message_key",
    "once",
    "purge",
    "task_key",
]  # fmt: skip
