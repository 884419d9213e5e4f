"""Seal (encrypt) what was stored while encryption was off: payloads, edits, digests of bodies, answers of targets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Final, LiteralString

from psycopg.types.json import Jsonb

from reprocessing.domain.message.identity import body_hash
from reprocessing.domain.payloads.sealing import Part
from reprocessing.domain.replay import attempt_detail
from reprocessing.domain.replay.attempt_detail import QUOTES
from reprocessing.store import rows
from reprocessing.store.payloads import content, payload_keys
from reprocessing.store.payloads.content import IS_SEALED, Sealer

#: Bytes and number of letters in one transaction.
CHUNK, LETTERS = 8 * 1024 * 1024, 500

#: How many of the oldest and of the newest payloads and edits are looked at to find readable ones.
LOOKED_AT: Final = 10_000

#: Permits sealing captured and edited bytes until the end of the transaction.
_ALLOW: Final[LiteralString] = "SET LOCAL redrive.reseals = 'on'"

# Payloads that are not encrypted, in the order of their letters' ids.
_READABLE = f"""
SELECT * FROM (
    SELECT l.id, l.dlq_id, l.message_id, p.body, p.attributes, p.system, l.body_hash,
           sum(l.size) OVER (ORDER BY l.id) - l.size AS before
      FROM redrive_letter l JOIN redrive_payload p ON p.letter_id = l.id
     WHERE l.id > %(above)b::bigint AND NOT {IS_SEALED.format("p.attributes")}
     ORDER BY l.id LIMIT %(limit)b) found
 WHERE before < %(chunk)b::bigint ORDER BY id
"""  # noqa: S608  # the inserted text is a constant

_READABLE_EDITS = f"""
SELECT v.id, l.dlq_id, l.message_id, v.letter_id, v.body, v.attributes, v.body_hash, v.previous_body_hash
  FROM redrive_revision v JOIN redrive_letter l ON l.id = v.letter_id
 WHERE v.id > %(above)b::bigint AND NOT {IS_SEALED.format("v.attributes")} ORDER BY v.id LIMIT %(limit)b
"""  # noqa: S608  # as above

_SEAL = f"""
UPDATE redrive_payload p SET body = s.body, attributes = s.attributes, system = s.system
  FROM unnest(%(ids)b::bigint[], %(bodies)b::bytea[], %(attributes)b::bytea[], %(systems)b::jsonb[])
       AS s(id, body, attributes, system)
 WHERE p.letter_id = s.id AND NOT {IS_SEALED.format("p.attributes")}
"""  # noqa: S608  # as above

_SEAL_EDITS = f"""
UPDATE redrive_revision v
   SET body = s.body, attributes = s.attributes, body_hash = s.digest, previous_body_hash = s.previous
  FROM unnest(%(ids)b::bigint[], %(bodies)b::bytea[], %(attributes)b::bytea[], %(digests)b::bytea[],
              %(previous)b::bytea[]) AS s(id, body, attributes, digest, previous)
 WHERE v.id = s.id AND NOT {IS_SEALED.format("v.attributes")}
"""  # noqa: S608  # as above

_DIGESTS = """
UPDATE redrive_letter l SET body_hash = s.digest
  FROM unnest(%(former)b::bytea[], %(digests)b::bytea[], %(letters)b::bigint[]) AS s(former, digest, id)
 WHERE l.id = s.id AND l.body_hash = s.former
"""

_CLAIMS = """
UPDATE redrive_claim c SET body_hash = s.digest
  FROM unnest(%(former)b::bytea[], %(digests)b::bytea[], %(letters)b::bigint[]) AS s(former, digest, id)
 WHERE c.letter_id = s.id AND c.body_hash = s.former
"""

# Reads a bounded number of rows: readable rows are the oldest (before encryption was enabled), or the newest.
_COUNT_READABLE = f"""
SELECT (SELECT count(*) FROM (
            (SELECT letter_id, {IS_SEALED.format("attributes")} AS sealed FROM redrive_payload
              ORDER BY letter_id LIMIT %(limit)b)
            UNION
            (SELECT letter_id, {IS_SEALED.format("attributes")} FROM redrive_payload
              ORDER BY letter_id DESC LIMIT %(limit)b)) p WHERE NOT sealed)
     + (SELECT count(*) FROM (
            (SELECT id, {IS_SEALED.format("attributes")} AS sealed FROM redrive_revision ORDER BY id LIMIT %(limit)b)
            UNION
            (SELECT id, {IS_SEALED.format("attributes")} FROM redrive_revision
              ORDER BY id DESC LIMIT %(limit)b)) v WHERE NOT sealed) AS n
"""  # noqa: S608  # as above

_LIVE = "SELECT id FROM redrive_payload_key WHERE id = ANY(%(ids)b::bigint[]) AND destroyed_at IS NULL FOR SHARE"


@dataclass(frozen=True, slots=True)
class _Readable:
    id: int
    dlq_id: int
    message_id: str
    body: bytes
    attributes: bytes
    system: dict[str, Any]
    body_hash: bytes
    before: int


@dataclass(frozen=True, slots=True)
class _ReadableEdit:
    id: int
    dlq_id: int
    message_id: str
    letter_id: int
    body: bytes
    attributes: bytes
    body_hash: bytes
    previous_body_hash: bytes


# Readable texts of targets in details of attempts; details of parked letters are copies of these. A text begins with
# chr(26); a sealed text continues with `/wE`.
_DETAILS: Final[LiteralString] = """
SELECT a.id, l.dlq_id, l.message_id, a.detail FROM redrive_attempt a JOIN redrive_letter l ON l.id = a.letter_id
 WHERE a.id > %(above)b::bigint AND strpos(a.detail, chr(26)) > 0 AND strpos(a.detail, chr(26) || '/wE') = 0
 ORDER BY a.id LIMIT 500
"""

_SEAL_DETAILS = """
WITH sealed AS (
    UPDATE redrive_attempt a SET detail = s.detail
      FROM unnest(%(ids)b::bigint[], %(former)b::text[], %(details)b::text[]) AS s(id, former, detail)
     WHERE a.id = s.id AND a.detail = s.former
    RETURNING a.letter_id, s.former, s.detail
), copied AS (
    UPDATE redrive_letter l SET detail = s.detail FROM sealed s WHERE l.id = s.letter_id AND l.detail = s.former
)
SELECT letter_id FROM sealed
"""


@dataclass(frozen=True, slots=True)
class _Detail:
    id: int
    dlq_id: int
    message_id: str
    detail: str


@dataclass(frozen=True, slots=True)
class Sealed:
    """How many rows (`n`) a call encrypted, and the id of the last row; `last` 0: all rows are encrypted now."""

    n: int
    last: int


def seal_payloads(above: int, day: date) -> Sealed:
    """Encrypt up to 500 payloads (8 MiB) that are not encrypted yet, of letters with ids above `above`.

    `day`: each DLQ has a data key for each day; the keys of this day are used.
    """
    found = rows.fetch(_Readable, _READABLE, {"above": above, "limit": LETTERS, "chunk": CHUNK})
    if not found:
        return Sealed(0, 0)
    sealers = _sealers({letter.dlq_id for letter in found}, day)
    digests = content.digests(letter.body for letter in found)
    values = {
        "ids": [letter.id for letter in found],
        "bodies": [sealers[row.dlq_id].bytes(row.body, Part.BODY, of=row.message_id) for row in found],
        "attributes": [sealers[row.dlq_id].bytes(row.attributes, Part.ATTRIBUTES, of=row.message_id) for row in found],
        "systems": [Jsonb(sealers[row.dlq_id].system(row.system, of=row.message_id)) for row in found],
    }
    former = [body_hash(letter.body) for letter in found]

    def write() -> int:
        if not _all_live(sealers.values()):
            return 0
        rows.execute(_ALLOW, {})
        rows.execute(_DIGESTS, {"former": former, "digests": digests, "letters": values["ids"]})
        rows.execute(_CLAIMS, {"former": former, "digests": digests, "letters": values["ids"]})
        return rows.execute(_SEAL, values)

    return Sealed(rows.in_transaction(write), found[-1].id)


def count_readable() -> int:
    """Return how many payloads and edits are not encrypted, among the oldest 10,000 and the newest 10,000."""
    return rows.value(int, _COUNT_READABLE, {"limit": LOOKED_AT})


def seal_edits(above: int, day: date) -> Sealed:
    """Encrypt up to 20 edits that are not encrypted yet, with ids above `above`, in one transaction.

    `day`: each DLQ has a data key for each day; the keys of this day are used.
    """
    found = rows.fetch(_ReadableEdit, _READABLE_EDITS, {"above": above, "limit": 20})
    if not found:
        return Sealed(0, 0)
    sealers = _sealers({edit.dlq_id for edit in found}, day)
    digests = content.digests(edit.body for edit in found)
    plain = [body_hash(edit.body) for edit in found]
    values = {
        "ids": [edit.id for edit in found],
        "bodies": [sealers[row.dlq_id].bytes(row.body, Part.BODY, of=row.message_id) for row in found],
        "attributes": [sealers[row.dlq_id].bytes(row.attributes, Part.ATTRIBUTES, of=row.message_id) for row in found],
        "digests": digests, "previous": _previous(found),
    }  # fmt: skip

    def write() -> int:
        if not _all_live(sealers.values()):
            return 0
        rows.execute(_ALLOW, {})
        letters = [edit.letter_id for edit in found]
        rows.execute(_DIGESTS, {"former": plain, "digests": digests, "letters": letters})
        rows.execute(_CLAIMS, {"former": plain, "digests": digests, "letters": letters})
        return rows.execute(_SEAL_EDITS, values)

    return Sealed(rows.in_transaction(write), found[-1].id)


def seal_details(above: int, day: date) -> Sealed:
    """Encrypt targets' answers that are not encrypted yet, in up to 500 attempts with ids above `above`.

    `day`: each DLQ has a data key for each day; the keys of this day are used.
    """
    found = rows.fetch(_Detail, _DETAILS, {"above": above})
    if not found:
        return Sealed(0, 0)
    sealers = _sealers({attempt.dlq_id for attempt in found}, day)
    values = {
        "ids": [attempt.id for attempt in found],
        "former": [attempt.detail for attempt in found],
        "details": [_sealed_detail(attempt, sealers[attempt.dlq_id]) for attempt in found],
    }

    def write() -> int:
        if not _all_live(sealers.values()):
            return 0
        rows.execute(_ALLOW, {})
        return len(rows.column(int, _SEAL_DETAILS, values))

    return Sealed(rows.in_transaction(write), found[-1].id)


def _sealed_detail(attempt: _Detail, sealer: Sealer) -> str:
    said, text = attempt_detail.split(attempt.detail)
    return f"{said}{QUOTES}{sealer.text(text, Part.ANSWER, of=attempt.message_id)}"


def _sealers(dlqs: set[int], day: date) -> dict[int, Sealer]:
    return {dlq: content.sealer_of(dlq, day) for dlq in dlqs}


def _all_live(sealers: Iterable[Sealer]) -> bool:
    """Return whether the data keys of all sealers still exist; until the commit, nobody can destroy them."""
    ids = sorted({sealer.key_id for sealer in sealers if sealer.key_id is not None})
    live = rows.column(int, _LIVE, {"ids": ids})
    if len(live) < len(ids):
        payload_keys.forget_unwrapped()
    return len(live) == len(ids)


def _previous(found: Sequence[_ReadableEdit]) -> list[bytes]:
    """Return, for each edit, the digest of the body before it: the captured body, or the body of the edit before."""
    statement: LiteralString = """
SELECT l.message_id, l.id AS letter_id, p.body FROM redrive_letter l JOIN redrive_payload p ON p.letter_id = l.id
 WHERE l.id = ANY(%(letters)b::bigint[])
UNION ALL
SELECT l.message_id, l.id, v.body FROM redrive_revision v JOIN redrive_letter l ON l.id = v.letter_id
 WHERE l.id = ANY(%(letters)b::bigint[])
"""
    bodies = content.opened(rows.fetch(_Body, statement, {"letters": [edit.letter_id for edit in found]}))
    keyed = content.digests(letter.body for letter in bodies)
    known = {body_hash(letter.body): digest for letter, digest in zip(bodies, keyed, strict=True)}
    return [known.get(edit.previous_body_hash, edit.previous_body_hash) for edit in found]


@dataclass(frozen=True, slots=True)
class _Body:
    message_id: str
    letter_id: int
    body: bytes
