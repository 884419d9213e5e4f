"""Write the values of search fields (entries). Values of encrypted DLQs are stored as keyed hashes (ADR 0044)."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from reprocessing.domain.payloads.sealing import DataKey
from reprocessing.domain.search.search_fields import HASHED, SearchValue
from reprocessing.store import rows
from reprocessing.store.payloads import payload_keys

_HASH_BYTES: Final = 16

# The payloads are locked: an erasure, which deletes a payload, waits for this transaction, and then deletes the
# entries.
_ADD = """
WITH held AS (
    SELECT p.letter_id FROM redrive_payload p WHERE p.letter_id = ANY(%(letters)b::bigint[]) FOR KEY SHARE
), live AS (
    SELECT id FROM redrive_payload_key WHERE id = ANY(%(key_id)b::bigint[]) AND destroyed_at IS NULL FOR SHARE
)
INSERT INTO redrive_search_entry (letter_id, dlq_id, name, value, masked)
SELECT s.letter_id, l.dlq_id, s.name, s.value, s.masked
  FROM unnest(%(letters)b::bigint[], %(name)b::text[], %(value)b::text[], %(masked)b::bool[], %(key_id)b::bigint[])
       AS s(letter_id, name, value, masked, key_id)
  JOIN held h ON h.letter_id = s.letter_id JOIN redrive_letter l ON l.id = s.letter_id
 WHERE s.key_id IS NULL OR s.key_id IN (SELECT id FROM live)
ON CONFLICT DO NOTHING
"""


@dataclass(frozen=True, slots=True)
class Hasher:
    """Computes what is stored for the values of one DLQ: keyed hashes, or without a key the values themselves."""

    key: DataKey | None

    @property
    def key_id(self) -> int | None:
        """Return the id of the key of the hashes; None: values are stored as they are."""
        return None if self.key is None else self.key.id

    def stored(self, name: str, value: str) -> str:
        """Return the text that is stored for a value of a field."""
        if self.key is None:
            return value
        digest = self.key.digest(f"search {name}\0{value}".encode())[:_HASH_BYTES]
        return HASHED + base64.b64encode(digest).decode()


@dataclass(frozen=True, slots=True)
class Entry:
    """A value of a search field, as it is stored. `key_id`: the key of its hash; None: the value is not hashed."""

    name: str
    value: str
    masked: bool
    key_id: int | None


@dataclass(frozen=True, slots=True)
class EntriesOfMessages:
    """The search entries of new letters. `message_ids`: for each entry, the id of its message.

    `version`: the version of the DLQ's search settings by which the entries were made.
    """

    version: int
    message_ids: list[str] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)

    @property
    def key_ids(self) -> set[int]:
        """Return the ids of the keys with which the entries' hashes were computed."""
        return {entry.key_id for entry in self.entries if entry.key_id is not None}


def hasher_of(dlq: int) -> Hasher:
    """Return the hasher for new values of a DLQ. Call this outside a transaction, because AWS KMS may be called."""
    return Hasher(payload_keys.current_key((dlq, None)))


def stored_entries(found: Iterable[SearchValue], hasher: Hasher) -> list[Entry]:
    """Return the entries to store for these values, hashed if the hasher has a key."""
    return [Entry(one.name, hasher.stored(one.name, one.value), one.masked, hasher.key_id) for one in found]


def add_entries(letters: Sequence[int], entries: Sequence[Entry]) -> None:
    """Store search entries. `letters`: for each entry, the id of its letter. Letters without a payload get no entries.

    An entry whose key was destroyed meanwhile is not stored. Call this function in the transaction that stores the
    payloads, or that deletes the former entries.
    """
    if entries:
        rows.execute(_ADD, {"letters": list(letters), **rows.arrays(Entry, entries)})
