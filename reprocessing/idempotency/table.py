"""The SQL statements of claims. Each statement both checks and changes a claim's row, by the database's clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, LiteralString
from uuid import UUID, uuid4

from django.db import connections

_KEY: Final = "space = %(space)s::text AND key = %(key)s::text"
_HELD: Final = f"{_KEY} AND token = %(token)s::uuid"
_FREE: Final = "(c.state = 'failed' OR (c.state = 'in_progress' AND c.lease_until <= clock_timestamp()))"
_OLD: Final = "keep_until <= clock_timestamp() AND (state <> 'in_progress' OR lease_until <= clock_timestamp())"

# Claim a key if it has no claim, if its work failed, or if its lease has ended. Change nothing if the key was used for
# another payload.
_TAKE: Final = f"""
INSERT INTO redrive_idempotency_claim AS c (space, key, state, token, payload_hash, attempts, failures, error_type,
                                            error_message, claimed_at, lease_until, keep_until)
SELECT %(space)s::text, %(key)s::text, 'in_progress', %(token)s::uuid, %(payload_hash)s::bytea, 1, 0, '', '',
       at, at + %(lease)s::interval, at + %(lease)s::interval + %(keep)s::interval
  FROM (SELECT clock_timestamp() AS at) clock
ON CONFLICT (space, key) DO UPDATE
   SET state = 'in_progress', token = EXCLUDED.token, attempts = c.attempts + 1, claimed_at = EXCLUDED.claimed_at,
       payload_hash = COALESCE(c.payload_hash, EXCLUDED.payload_hash), lease_until = EXCLUDED.lease_until,
       keep_until = GREATEST(c.keep_until, EXCLUDED.keep_until)
 WHERE {_FREE} AND COALESCE(c.payload_hash = EXCLUDED.payload_hash, true)
"""  # noqa: S608  # all texts that are inserted into statements are constants

_LOOK: Final = f"""
SELECT state, result, EXTRACT(epoch FROM lease_until - clock_timestamp())::float8 AS rest,
       COALESCE(payload_hash <> %(payload_hash)s::bytea, false) AS other_payload
  FROM redrive_idempotency_claim WHERE {_KEY}
"""  # noqa: S608

# This statement may run twice, because the database's reply to the first run may be lost. So it also accepts work that
# the same token has already recorded as done.
_DONE: Final = f"""
UPDATE redrive_idempotency_claim
   SET state = 'done', result = %(result)s::text, lease_until = NULL, done_at = COALESCE(done_at, clock_timestamp()),
       keep_until = clock_timestamp() + %(keep)s::interval
 WHERE {_HELD} AND state <> 'failed'
"""  # noqa: S608

_FAILED: Final = f"""
UPDATE redrive_idempotency_claim
   SET state = 'failed', lease_until = NULL, failures = failures + 1, failed_at = clock_timestamp(),
       error_type = %(error_type)s::text, error_message = %(error_message)s::text,
       keep_until = clock_timestamp() + %(keep)s::interval
 WHERE {_HELD} AND state = 'in_progress'
"""  # noqa: S608

# Record the failure of work whose claim was rolled back, unless another worker has the claim or finished the work.
_FAILED_ANEW: Final = f"""
INSERT INTO redrive_idempotency_claim AS c (space, key, state, token, payload_hash, attempts, failures, claimed_at,
                                            failed_at, error_type, error_message, keep_until)
SELECT %(space)s::text, %(key)s::text, 'failed', %(token)s::uuid, %(payload_hash)s::bytea, 1, 1, at, at,
       %(error_type)s::text, %(error_message)s::text, at + %(keep)s::interval
  FROM (SELECT clock_timestamp() AS at) clock
ON CONFLICT (space, key) DO UPDATE
   SET state = 'failed', lease_until = NULL, token = EXCLUDED.token, attempts = c.attempts + 1,
       failures = c.failures + 1, failed_at = EXCLUDED.failed_at, error_type = EXCLUDED.error_type,
       error_message = EXCLUDED.error_message, keep_until = GREATEST(c.keep_until, EXCLUDED.keep_until)
 WHERE {_FREE}
"""  # noqa: S608

_RENEW: Final = f"""
UPDATE redrive_idempotency_claim
   SET lease_until = clock_timestamp() + %(lease)s::interval,
       keep_until = clock_timestamp() + %(lease)s::interval + %(keep)s::interval
 WHERE {_HELD} AND state = 'in_progress'
"""  # noqa: S608

# A transactional claim holds this lock until its commit. Without the lock, other workers would wait for the uncommitted
# row. With the lock, they see at once that the key is claimed.
_LOCK: Final = (
    "SELECT pg_try_advisory_xact_lock(hashtextextended(%(space)s::text || chr(1) || %(key)s::text, 5276893427))"
)

_FORGET: Final = f"""
DELETE FROM redrive_idempotency_claim WHERE (space, key) IN (
    SELECT space, key FROM redrive_idempotency_claim
     WHERE {_OLD}
     ORDER BY keep_until LIMIT %(limit)s::int FOR UPDATE SKIP LOCKED)
"""  # noqa: S608
_COUNT: Final = f"SELECT count(*) FROM redrive_idempotency_claim WHERE {_OLD}"  # noqa: S608


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimKey:
    """The database (`using`), space and key of a claim, the payload's hash, and how long the result is kept."""

    using: str
    space: str
    key: str
    payload_hash: bytes | None
    keep: timedelta


@dataclass(frozen=True, slots=True)
class ClaimRow:
    """A claim as it is stored. `rest`: seconds until its lease ends; None: it has no lease.

    `other_payload`: whether the key was used for another payload than the caller's payload.
    """

    state: str
    result: str | None
    rest: float | None
    other_payload: bool


def take_claim(place: ClaimKey, *, lease: timedelta) -> UUID | None:
    """Claim a key; return the claim's new token. None: another worker has the claim, or the work was done."""
    token = uuid4()
    return token if _moved(place, _TAKE, {"token": token, "lease": lease}) else None


def read_claim(place: ClaimKey) -> ClaimRow | None:
    """Return the claim of a key; None if the key has no claim."""
    row = _one(place, _LOOK)
    return None if row is None else ClaimRow(*row)


def lock_key(place: ClaimKey) -> bool:
    """Try to get the advisory lock of a key, without waiting; return whether this transaction got it.

    The transaction holds the lock until its end.
    """
    row = _one(place, _LOCK)
    return bool(row and row[0])


def record_done(place: ClaimKey, token: UUID, *, result: str | None) -> bool:
    """Record that the work is done. Return False, and record nothing, if another worker has the claim."""
    return _moved(place, _DONE, {"token": token, "result": result})


def record_failed(place: ClaimKey, token: UUID, *, error: tuple[str, str]) -> bool:
    """Record that the work failed. Return False, and record nothing, if another worker has the claim.

    `error`: the type and the text of the exception.
    """
    return _moved(place, _FAILED, {"token": token, "error_type": error[0], "error_message": error[1]})


def record_rolled_back_failure(place: ClaimKey, *, error: tuple[str, str]) -> None:
    """Record that the work failed, although the rollback of its transaction has removed the claim.

    Nothing is recorded if another worker has the claim, or has finished the work. `error`: the type and the text of the
    exception.
    """
    _moved(place, _FAILED_ANEW, {"token": uuid4(), "error_type": error[0], "error_message": error[1]})


def renew_lease(place: ClaimKey, token: UUID, *, lease: timedelta) -> bool:
    """Extend the lease of a claim to its full length from now.

    Return False, and change nothing, if another worker has the claim.
    """
    return _moved(place, _RENEW, {"token": token, "lease": lease})


def delete_old_claims(using: str, *, limit: int) -> int:
    """Delete at most `limit` expired claims, the oldest first. Return how many were deleted."""
    with connections[using].cursor() as cursor:
        cursor.execute(_FORGET, {"limit": limit})
        found: int = cursor.rowcount
        return found


def count_old_claims(using: str) -> int:
    """Return how many expired claims `delete_old_claims` would delete."""
    with connections[using].cursor() as cursor:
        cursor.execute(_COUNT)
        return int(cursor.fetchone()[0])


def _moved(place: ClaimKey, statement: LiteralString, more: Mapping[str, Any]) -> bool:
    with connections[place.using].cursor() as cursor:
        cursor.execute(statement, {**_names(place), **more})
        return bool(cursor.rowcount)


def _one(place: ClaimKey, statement: LiteralString) -> tuple[Any, ...] | None:
    with connections[place.using].cursor() as cursor:
        cursor.execute(statement, _names(place))
        row: tuple[Any, ...] | None = cursor.fetchone()
        return row


def _names(place: ClaimKey) -> dict[str, Any]:
    return {"space": place.space, "key": place.key, "payload_hash": place.payload_hash, "keep": place.keep}
