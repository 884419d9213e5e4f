"""The statements that move a claim: each compares before it sets, by the database's clock.

They are on their own: neither the service's clock nor its way with rows is there where this package is installed alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, LiteralString
from uuid import UUID, uuid4

from django.db import connections

# Taken when nobody has it: there is no row, it failed, or its lease has ended; never for another payload. What is known
# of earlier failures stays.
_TAKE: Final = """
INSERT INTO redrive_idempotency_claim AS c (space, key, state, token, payload_hash, attempts, failures, error_type,
                                            error_message, claimed_at, lease_until, keep_until)
SELECT %(space)s::text, %(key)s::text, 'in_progress', %(token)s::uuid, %(payload_hash)s::bytea, 1, 0, '', '',
       at, at + %(lease)s::interval, at + %(lease)s::interval + %(keep)s::interval
  FROM (SELECT clock_timestamp() AS at) clock
ON CONFLICT (space, key) DO UPDATE
   SET state = 'in_progress', token = EXCLUDED.token, attempts = c.attempts + 1, claimed_at = EXCLUDED.claimed_at,
       payload_hash = COALESCE(c.payload_hash, EXCLUDED.payload_hash), lease_until = EXCLUDED.lease_until,
       keep_until = GREATEST(c.keep_until, EXCLUDED.keep_until)
 WHERE (c.state = 'failed' OR (c.state = 'in_progress' AND c.lease_until <= clock_timestamp()))
   AND COALESCE(c.payload_hash = EXCLUDED.payload_hash, true)
"""

_LOOK: Final = """
SELECT state, result, done_at IS NOT NULL AS done, EXTRACT(epoch FROM lease_until - clock_timestamp())::float8 AS rest,
       COALESCE(payload_hash <> %(payload_hash)s::bytea, false) AS other_payload
  FROM redrive_idempotency_claim WHERE space = %(space)s::text AND key = %(key)s::text
"""

# Said again by whoever does not know whether it was heard, it changes nothing.
_DONE: Final = """
UPDATE redrive_idempotency_claim
   SET state = 'done', result = %(result)s::text, lease_until = NULL, done_at = COALESCE(done_at, clock_timestamp()),
       keep_until = clock_timestamp() + %(keep)s::interval
 WHERE space = %(space)s::text AND key = %(key)s::text AND token = %(token)s::uuid AND state <> 'failed'
"""

_FAILED: Final = """
UPDATE redrive_idempotency_claim
   SET state = 'failed', lease_until = NULL, failures = failures + 1, failed_at = clock_timestamp(),
       error_type = %(error_type)s::text, error_message = %(error_message)s::text,
       keep_until = clock_timestamp() + %(keep)s::interval
 WHERE space = %(space)s::text AND key = %(key)s::text AND token = %(token)s::uuid AND state = 'in_progress'
"""

# The failure of work whose claim went with its transaction. One that somebody holds, or finished, is theirs.
_FAILED_ANEW: Final = """
INSERT INTO redrive_idempotency_claim AS c (space, key, state, token, payload_hash, attempts, failures, claimed_at,
                                            failed_at, error_type, error_message, keep_until)
SELECT %(space)s::text, %(key)s::text, 'failed', %(token)s::uuid, %(payload_hash)s::bytea, 1, 1, at, at,
       %(error_type)s::text, %(error_message)s::text,
       at + %(keep)s::interval
  FROM (SELECT clock_timestamp() AS at) clock
ON CONFLICT (space, key) DO UPDATE
   SET state = 'failed', lease_until = NULL, token = EXCLUDED.token, attempts = c.attempts + 1,
       failures = c.failures + 1, failed_at = EXCLUDED.failed_at, error_type = EXCLUDED.error_type,
       error_message = EXCLUDED.error_message, keep_until = GREATEST(c.keep_until, EXCLUDED.keep_until)
 WHERE c.state = 'failed' OR (c.state = 'in_progress' AND c.lease_until <= clock_timestamp())
"""

_RENEW: Final = """
UPDATE redrive_idempotency_claim
   SET lease_until = clock_timestamp() + %(lease)s::interval,
       keep_until = clock_timestamp() + %(lease)s::interval + %(keep)s::interval
 WHERE space = %(space)s::text AND key = %(key)s::text AND token = %(token)s::uuid AND state = 'in_progress'
"""

# Whoever takes a key in a transaction is known by this lock, not by waiting for its row: to others it is in progress.
_LOCK: Final = (
    "SELECT pg_try_advisory_xact_lock(hashtextextended(%(space)s::text || chr(1) || %(key)s::text, 5276893427))"
)

# What is past its time; what somebody works on never is.
_FORGET: Final = """
DELETE FROM redrive_idempotency_claim WHERE (space, key) IN (
    SELECT space, key FROM redrive_idempotency_claim
     WHERE keep_until <= clock_timestamp() AND (state <> 'in_progress' OR lease_until <= clock_timestamp())
     ORDER BY keep_until LIMIT %(limit)s::int FOR UPDATE SKIP LOCKED)
"""
_COUNT: Final = """
SELECT count(*) FROM redrive_idempotency_claim
 WHERE keep_until <= clock_timestamp() AND (state <> 'in_progress' OR lease_until <= clock_timestamp())
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where one claim is: under which alias, of which space, under which key, for which payload."""

    using: str
    space: str
    key: str
    payload_hash: bytes | None
    keep: timedelta


@dataclass(frozen=True, slots=True)
class Seen:
    """How a claim of somebody else stands. `rest`: seconds that its lease still has."""

    state: str
    result: str | None
    done: bool
    rest: float | None
    other_payload: bool


def take(place: Place, *, lease: timedelta) -> UUID | None:
    """Claim a key; the token of whoever has it now, or None when it is not to be had."""
    token = uuid4()
    return token if _moved(place, _TAKE, {"token": token, "lease": lease}) else None


def look(place: Place) -> Seen | None:
    """How the claim stands, if there is one."""
    row = _one(place, _LOOK)
    return None if row is None else Seen(*row)


def lock(place: Place) -> bool:
    """Whether this transaction is the one that may take the key; until its end no other may."""
    row = _one(place, _LOCK)
    return bool(row and row[0])


def done(place: Place, token: UUID, *, result: str | None) -> bool:
    """Say that the work is done; whether the claim was still the holder's."""
    return _moved(place, _DONE, {"token": token, "result": result})


def failed(place: Place, token: UUID, *, error: tuple[str, str]) -> bool:
    """Release the claim for another try, with the error's type and message; whether it was still the holder's."""
    return _moved(place, _FAILED, {"token": token, "error_type": error[0], "error_message": error[1]})


def failed_anew(place: Place, *, error: tuple[str, str]) -> None:
    """Note the failure of work whose claim was rolled back with it."""
    _moved(place, _FAILED_ANEW, {"token": uuid4(), "error_type": error[0], "error_message": error[1]})


def renew(place: Place, token: UUID, *, lease: timedelta) -> bool:
    """Let the lease begin anew; whether the claim was still the holder's."""
    return _moved(place, _RENEW, {"token": token, "lease": lease})


def forget(using: str, *, limit: int) -> int:
    """Delete at most so many claims that nobody asks for any more; how many."""
    with connections[using].cursor() as cursor:
        cursor.execute(_FORGET, {"limit": limit})
        found: int = cursor.rowcount
        return found


def forgettable(using: str) -> int:
    """How many claims nobody asks for any more."""
    with connections[using].cursor() as cursor:
        cursor.execute(_COUNT)
        return int(cursor.fetchone()[0])


def _moved(place: Place, statement: LiteralString, more: Mapping[str, Any]) -> bool:
    with connections[place.using].cursor() as cursor:
        cursor.execute(statement, {**_names(place), **more})
        return bool(cursor.rowcount)


def _one(place: Place, statement: LiteralString) -> tuple[Any, ...] | None:
    with connections[place.using].cursor() as cursor:
        cursor.execute(statement, _names(place))
        row: tuple[Any, ...] | None = cursor.fetchone()
        return row


def _names(place: Place) -> dict[str, Any]:
    return {"space": place.space, "key": place.key, "payload_hash": place.payload_hash, "keep": place.keep}
