"""Answer each request with an idempotency key once. A repetition gets the answer of the first request.

A request leases its key before it acts, and stores its answer afterwards. While the lease lasts, an equal request is
told to wait. A process that was killed stores no answer: when the lease has ended, an equal request takes the key over
and acts again. What requests do is compare-and-set, or has an id made from the key, so that this does nothing twice.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from reprocessing.store import rows

#: Seconds of a lease, longer than any request takes.
LEASE_SECONDS: Final = 120.0
#: Seconds for which an answer is kept.
KEPT_SECONDS: Final = 86_400.0


@dataclass(frozen=True, slots=True)
class Leased:
    """The key is leased: act, then store the answer."""

    id: int
    leased_until: datetime


@dataclass(frozen=True, slots=True)
class Answered:
    """The key has an answer of an equal request."""

    status: int
    answer: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class InProgress:
    """An equal request is being answered now."""


@dataclass(frozen=True, slots=True)
class OtherRequest:
    """The key belongs to another request."""


Claim = Leased | Answered | InProgress | OtherRequest


@dataclass(frozen=True, slots=True)
class _Known:
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
               WHERE made_at <= redrive_now() - make_interval(secs => %(kept)b::float8)
               ORDER BY made_at LIMIT %(limit)b)
"""


def lease_key(token: int, key: str, request_hash: bytes) -> Claim:
    """Lease the key for this request, or return why not."""
    asked = {"token": token, "key": key, "hash": request_hash, "lease": LEASE_SECONDS, "kept": KEPT_SECONDS}
    if leased := rows.first(Leased, _LEASE, asked):
        return leased
    known = rows.first(_Known, _KNOWN, {"token": token, "key": key, "hash": request_hash})
    if known is None:  # the first request was not answered, and gave the key back meanwhile
        return InProgress()
    if not known.same:
        return OtherRequest()
    return InProgress() if known.status is None or known.answer is None else Answered(known.status, known.answer)


def store_answer(held: Leased, status: int, answer: bytes) -> None:
    """Store the answer, unless another request took the key over."""
    rows.execute(_STORE, {"id": held.id, "held": held.leased_until, "status": status, "answer": answer})


def release_key(held: Leased) -> None:
    """Give the key back without an answer: nothing was done, so the same request may be sent again."""
    rows.execute(_RELEASE, {"id": held.id, "held": held.leased_until})


def delete_old(*, limit: int) -> int:
    """Delete up to `limit` answers that are a day old; return how many."""
    return rows.execute(_OLD, {"kept": KEPT_SECONDS, "limit": limit})
