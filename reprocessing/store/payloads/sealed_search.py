"""Search sealed (encrypted) bodies for a text. PostgreSQL cannot decrypt bodies, so this process decrypts them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from reprocessing.domain.errors import InvalidFilter
from reprocessing.store import rows
from reprocessing.store.payloads import content
from reprocessing.store.payloads.content import IS_SEALED

#: Highest number of bytes, and of letters, in a chunk that is decrypted; a larger letter is a chunk by itself.
CHUNK, LETTERS = 16 * 1024 * 1024, 1_000

_WEIGHTS = """
SELECT l.id, l.size FROM unnest(%(letters)b::bigint[]) AS s(id) JOIN redrive_letter l ON l.id = s.id ORDER BY l.id
"""

_SEALED = f"""
SELECT l.id, l.message_id, p.body, v.body AS original_body
  FROM redrive_letter l JOIN redrive_payload p ON p.letter_id = l.id
  LEFT JOIN redrive_revision v ON v.id = l.revision_id
 WHERE l.id = ANY(%(letters)b::bigint[])
   AND ({IS_SEALED.format("p.body")} OR coalesce({IS_SEALED.format("v.body")}, false))
"""  # noqa: S608  # the inserted texts are constants


@dataclass(frozen=True, slots=True)
class _Weight:
    id: int
    size: int


@dataclass(frozen=True, slots=True)
class _SealedLetter:
    id: int
    message_id: str
    body: bytes
    original_body: bytes | None


def sealed_letters_with(text: bytes, among: Sequence[int], *, seconds: float | None) -> list[int]:
    """Return the ids of those letters of `among` whose encrypted body, as captured or as edited, has the text.

    `seconds`: the time limit; None: no limit. A letter that cannot be decrypted does not match.

    Raises:
        InvalidFilter: the search took longer than `seconds`.
    """
    ends = None if seconds is None else time.monotonic() + seconds
    found: list[int] = []
    for chunk in chunks(among):
        if ends is not None and time.monotonic() > ends:
            raise InvalidFilter(
                f"The search took longer than {seconds:g} seconds and was stopped. Narrow the filter by DLQ, group or "
                "dates."
            )
        readable, _ = content.opened_or_why(rows.fetch(_SealedLetter, _SEALED, {"letters": chunk}))
        found += [letter.id for letter in readable if text in letter.body or text in (letter.original_body or b"")]
    return found


def chunks(letters: Sequence[int]) -> Iterator[list[int]]:
    """Yield the ids of letters, sorted, in chunks of up to 1,000 letters and 16 MiB (`LETTERS`, `CHUNK`)."""
    chunk, weight = list[int](), 0
    for letter in rows.fetch(_Weight, _WEIGHTS, {"letters": list(letters)}):
        if chunk and (weight + letter.size > CHUNK or len(chunk) >= LETTERS):
            yield chunk
            chunk, weight = [], 0
        chunk.append(letter.id)
        weight += letter.size
    if chunk:
        yield chunk
