"""Index the search fields of a DLQ's letters again, after its settings changed: in batches, the newest letters first.

The DLQ's row stores where the next batch begins, so that another worker can continue after a killed worker.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from reprocessing.domain.errors import PayloadKeyUnavailable, PayloadUnreadable
from reprocessing.store import rows
from reprocessing.store.payloads import content
from reprocessing.store.search.search_entries import Entry, add_entries
from reprocessing.store.search.search_settings import SearchSettings

#: Highest number of letters, ids and bytes that one batch reads. A letter with more bytes is a batch by itself.
LETTERS, SPAN, BYTES = 500, 20_000, 16 * 1024 * 1024

# The index of ids is read in parts of 20,000 letters of all DLQs, so that a small DLQ among many letters costs little.
_CHOOSE = """
SELECT l.id, l.size FROM redrive_letter l
 WHERE l.id < %(below)b::bigint AND l.id >= %(least)b::bigint AND l.dlq_id = %(dlq)b::bigint
 ORDER BY l.id DESC LIMIT %(limit)b
"""

_CONTENTS = """
SELECT l.id, l.message_id, p.body, p.attributes, p.system
  FROM unnest(%(letters)b::bigint[]) AS s(id) JOIN redrive_letter l ON l.id = s.id
  JOIN redrive_payload p ON p.letter_id = l.id
"""

# If two workers index the same batch, only the first succeeds. A worker with outdated settings fails.
_ADVANCE = """
UPDATE redrive_dlq SET search_reindex_below = nullif(%(next)b::bigint, 0)
 WHERE id = %(dlq)b::bigint AND search_version = %(version)b::int AND search_reindex_below = %(below)b::bigint
"""

_DELETE = """
DELETE FROM redrive_search_entry
 WHERE letter_id = ANY(ARRAY(SELECT l.id FROM redrive_letter l
                              WHERE l.id < %(below)b::bigint AND l.id >= %(next)b::bigint
                                AND l.dlq_id = %(dlq)b::bigint))
"""


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A letter's message as captured, decrypted."""

    id: int
    message_id: str
    body: bytes
    attributes: bytes
    system: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Part:
    """The ids of one batch's letters. `next`: the next batch has lower ids than this; 0: this is the last batch."""

    letters: list[int]
    next: int


@dataclass(frozen=True, slots=True)
class _Weight:
    id: int
    size: int


#: The lowest id that a letter can have.
_FIRST: Final = 1


def next_part(settings: SearchSettings) -> Part:
    """Return the next batch: the newest letters with ids below `settings.below`, which must not be None."""
    below = settings.below or 0
    least = max(_FIRST, below - SPAN)
    found = rows.fetch(_Weight, _CHOOSE, {"below": below, "least": least, "dlq": settings.id, "limit": LETTERS})
    chosen, weight = list[int](), 0
    for letter in found:
        if chosen and weight + letter.size > BYTES:
            break
        chosen.append(letter.id)
        weight += letter.size
    is_whole = len(chosen) == len(found) < LETTERS
    through = least if is_whole else chosen[-1]
    return Part(chosen, 0 if through == _FIRST else through)


def messages_of(part: Part) -> list[StoredMessage]:
    """Return the messages of a batch, without deleted messages, and messages that nobody can ever decrypt.

    Raises:
        PayloadKeyUnavailable: a message cannot be decrypted now.
    """
    found = rows.fetch(StoredMessage, _CONTENTS, {"letters": part.letters})
    try:
        return content.opened(found)
    except PayloadKeyUnavailable:
        raise  # the other keys are not tried: each may wait for AWS KMS
    except PayloadUnreadable:
        readable, problems = content.opened_or_errors(found)
    if later := [error for error in problems.values() if isinstance(error, PayloadKeyUnavailable)]:
        raise later[0]
    return readable


def write_part(settings: SearchSettings, part: Part, letters: Sequence[int], entries: Sequence[Entry]) -> bool:
    """Replace the search entries of a batch, and store where the next batch begins, in one transaction.

    Return False, and write nothing, if the settings changed meanwhile, or another worker has done the batch.
    """
    values = {"dlq": settings.id, "version": settings.version, "below": settings.below, "next": part.next}

    def work() -> bool:
        if not rows.execute(_ADVANCE, values):
            return False
        rows.execute(_DELETE, values)
        add_entries(letters, entries)
        return True

    return rows.in_transaction(work)
