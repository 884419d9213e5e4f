"""Store the bodies of messages that came back after their letters' bodies were deleted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from psycopg.types.json import Jsonb

from reprocessing.store import rows

_RESTORE = """
WITH back AS (
    SELECT DISTINCT ON (letter_id) * FROM unnest(%(letter_id)b::bigint[], %(body)b::bytea[], %(attributes)b::bytea[],
           %(system)b::jsonb[], %(body_hash)b::bytea[]) AS b(letter_id, body, attributes, system, body_hash)
     WHERE redrive_now() < %(until)b::timestamptz
), lettered AS (
    UPDATE redrive_letter l SET body_deleted_at = NULL, body_hash = b.body_hash
      FROM back b WHERE l.id = b.letter_id AND l.body_deleted_at IS NOT NULL
    RETURNING l.id
)
INSERT INTO redrive_payload (letter_id, body, attributes, system)
SELECT b.letter_id, b.body, b.attributes, b.system FROM back b JOIN lettered l ON l.id = b.letter_id
"""


@dataclass(frozen=True, slots=True)
class ReturnedBody:
    """The bytes of a copy that came back, for its letter; `body_hash` is the digest of `body`."""

    letter_id: int
    body: bytes
    attributes: bytes
    system: dict[str, str]
    body_hash: bytes


def restore_bodies(found: Sequence[ReturnedBody], *, until: datetime) -> None:
    """Give letters without a body the bytes that came back. Call it before the letters are moved, in one transaction.

    `until`: when the copies become visible again; after that nothing is stored, as nothing is recorded.
    """
    if found:
        values = {**rows.arrays(ReturnedBody, found), "system": [Jsonb(body.system) for body in found], "until": until}
        rows.execute(_RESTORE, values)
