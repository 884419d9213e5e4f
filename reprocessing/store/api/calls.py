"""Store the response to each HTTP API request that has the header `Idempotency-Key`.

If a client repeats a request with the same key, it gets the stored response, and nothing is done again. A request
leases its key before it acts, and stores its response afterwards. While the lease lasts, a repeated request gets an
error that asks the client to wait. If the process is killed, no response is stored. When the lease has ended, a
repeated request leases the key and acts again, but no change is made twice. Some changes are compare-and-set, and some
have an id made from the key. Decisions about messages are committed together with the response.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from reprocessing.store import rows

#: Length of a lease (s), longer than any request takes.
LEASE_SECONDS: Final = 120.0
#: Seconds for which a response is stored: a day.
KEPT_SECONDS: Final = 86_400.0


@dataclass(frozen=True, slots=True)
class Leased:
    """The caller has leased the key. It must execute the request, then call `store_answer` or `release_key`."""

    id: int
    leased_until: datetime


@dataclass(frozen=True, slots=True)
class Answered:
    """An equal request was answered before, with the HTTP status `status` and the body `answer`. Send these again."""

    status: int
    answer: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class InProgress:
    """An equal request is executed now, by another thread or process; the client must wait, and repeat its request."""


@dataclass(frozen=True, slots=True)
class OtherRequest:
    """The key was used before for a different request, so the caller must refuse this request."""


Claim = Leased | Answered | InProgress | OtherRequest


@dataclass(frozen=True, slots=True)
class _Known:
    """The stored request that has the same key as a new request. `same`: the two requests are equal.

    `status` and `answer` are its response; they are None if it has no response yet.
    """

    same: bool
    status: int | None
    answer: bytes | None


_LEASE = """
INSERT INTO redrive_api_call AS c (token_id, key, request_hash, made_at, leased_until)
VALUES (%(token)b, %(key)b, %(hash)b, redrive_now(), redrive_now() + make_interval(secs => %(lease)b::float8))
ON CONFLICT (token_id, key) DO UPDATE
   SET made_at = excluded.made_at, leased_until = excluded.leased_until, request_hash = excluded.request_hash,
       status = NULL, answer = NULL
 WHERE (c.leased_until <= redrive_now() AND c.request_hash = excluded.request_hash)
    OR c.made_at <= redrive_now() - make_interval(secs => %(kept)b::float8)
RETURNING id, leased_until
"""

_KNOWN = """
SELECT request_hash = %(hash)b AS same, status, answer FROM redrive_api_call
 WHERE token_id = %(token)b AND key = %(key)b
"""

_STORE = """
UPDATE redrive_api_call SET leased_until = NULL, status = %(status)b, answer = %(answer)b
 WHERE id = %(id)b AND leased_until = %(held)b
"""

_RELEASE = "DELETE FROM redrive_api_call WHERE id = %(id)b AND leased_until = %(held)b"

_OLD = """
DELETE FROM redrive_api_call
 WHERE id IN (SELECT id FROM redrive_api_call
               WHERE made_at <= (SELECT redrive_now() - make_interval(secs => %(kept)b::float8))
               ORDER BY made_at LIMIT %(limit)b)
"""


def lease_key(token: int, key: str, request_hash: bytes) -> Claim:
    """Lease a request's `Idempotency-Key`; return `Leased`, or why not: `Answered`, `InProgress` or `OtherRequest`.

    `token`: id of the API token; two tokens may use the same key. Equal requests have an equal `request_hash`.
    """
    asked = {"token": token, "key": key, "hash": request_hash, "lease": LEASE_SECONDS, "kept": KEPT_SECONDS}
    if leased := rows.first(Leased, _LEASE, asked):
        return leased
    known = rows.first(_Known, _KNOWN, {"token": token, "key": key, "hash": request_hash})
    if known is None:  # a concurrent request released the key between the two statements
        return InProgress()
    if not known.same:
        return OtherRequest()
    return InProgress() if known.status is None or known.answer is None else Answered(known.status, known.answer)


def store_answer(held: Leased, status: int, answer: bytes) -> bool:
    """Store the response to a request.

    Return False, and store nothing, if the request has a response already, or its lease ended and a repeated request
    has leased the key since.
    """
    stored = {"id": held.id, "held": held.leased_until, "status": status, "answer": answer}
    return rows.execute(_STORE, stored) > 0


def release_key(held: Leased) -> None:
    """Release a leased key without a response. Call it if the request changed nothing, so that it may be repeated."""
    rows.execute(_RELEASE, {"id": held.id, "held": held.leased_until})


def delete_old(*, limit: int) -> int:
    """Delete up to `limit` stored responses that are older than a day; return how many were deleted."""
    return rows.execute(_OLD, {"kept": KEPT_SECONDS, "limit": limit})
