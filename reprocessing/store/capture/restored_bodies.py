"""Store a message's body again if the message comes back to a DLQ after its letter's body was deleted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from psycopg.types.json import Jsonb

from reprocessing.domain.errors import PayloadKeyUnavailable
from reprocessing.store import rows
from reprocessing.store.payloads.payload_keys import forget_unwrapped
from reprocessing.store.search.search_entries import Entry, add_entries

# `finished_at` becomes now: if the letter stays finished, its body is deleted again `keep_bodies` days from now.
_RESTORE = """
WITH back AS (
    SELECT DISTINCT ON (letter_id) * FROM unnest(%(letter_id)b::bigint[], %(body)b::bytea[], %(attributes)b::bytea[],
           %(system)b::jsonb[], %(body_hash)b::bytea[], %(key_id)b::bigint[])
           AS b(letter_id, body, attributes, system, body_hash, key_id)
     WHERE redrive_now() < %(until)b::timestamptz
       AND (key_id IS NULL OR key_id IN (
                SELECT k.id FROM redrive_payload_key k
                 WHERE k.id = ANY(%(key_id)b::bigint[]) AND k.destroyed_at IS NULL FOR SHARE))
), restored AS (
    UPDATE redrive_letter l SET body_deleted_at = NULL, body_hash = b.body_hash, finished_at = redrive_now()
      FROM back b WHERE l.id = b.letter_id AND l.body_deleted_at IS NOT NULL
    RETURNING l.id
), stored AS (
    INSERT INTO redrive_payload (letter_id, body, attributes, system)
    SELECT b.letter_id, b.body, b.attributes, b.system FROM back b JOIN restored l ON l.id = b.letter_id
)
SELECT (SELECT count(*) FROM back) = %(letters)b::bigint OR redrive_now() >= %(until)b::timestamptz AS so
"""


@dataclass(frozen=True, slots=True)
class ReturnedBody:
    """The bytes of a message that came back, to be stored for its letter. `body_hash` is the digest of `body`."""

    letter_id: int
    body: bytes
    attributes: bytes
    system: dict[str, str]
    body_hash: bytes
    key_id: int | None = None  #: the data key that encrypted the bytes; None: they are readable
    entries: tuple[Entry, ...] = ()  #: the values of the DLQ's search fields


@dataclass(frozen=True, slots=True)
class LetterWithoutBody:
    """A letter whose body was deleted, with the DLQ and message id that are needed to encrypt a body that came back."""

    id: int
    dlq_id: int
    message_id: str


_WITHOUT_BODY = """
SELECT id, dlq_id, message_id FROM redrive_letter WHERE id = ANY(%(letters)b::bigint[]) AND body_deleted_at IS NOT NULL
"""


def letters_without_body(letters: Sequence[int]) -> dict[int, LetterWithoutBody]:
    """Return those of these letters whose bodies were deleted, by the letter's id."""
    if not letters:
        return {}
    return {letter.id: letter for letter in rows.fetch(LetterWithoutBody, _WITHOUT_BODY, {"letters": list(letters)})}


def restore_bodies(found: Sequence[ReturnedBody], *, until: datetime) -> None:
    """Store the bytes of messages that came back, for letters whose bodies were deleted before.

    Call it in the transaction that records that these messages came back. `until`: when the messages become visible in
    SQS again. After this time nothing is stored, because the return is not recorded either.

    Raises:
        PayloadKeyUnavailable: a data key was destroyed meanwhile. The keys are read again the next time.
    """
    if found:
        letters = len({body.letter_id for body in found})
        values = {**rows.arrays(ReturnedBody, found), "system": [Jsonb(body.system) for body in found]}
        if not rows.value(bool, _RESTORE, {**values, "until": until, "letters": letters}):
            forget_unwrapped()
            raise PayloadKeyUnavailable(
                "A data key was destroyed while messages were received. The next capture uses a new key."
            )
        pairs = [(body.letter_id, entry) for body in found for entry in body.entries]
        add_entries([letter_id for letter_id, _ in pairs], [entry for _, entry in pairs])
