"""Find letters whose body may be a pointer to the real body, an object in S3 (SQS extended client)."""

from __future__ import annotations

from dataclasses import dataclass

from reprocessing.store import rows
from reprocessing.store.payloads import content
from reprocessing.store.payloads.content import IS_SEALED

# A pointer has a few hundred bytes, so large bodies are not read. Encrypted bodies are read, and checked after
# decryption.
_POINTING = f"""
SELECT l.id, l.message_id, coalesce(v.body, p.body) AS body, coalesce(v.attributes, p.attributes) AS attributes
  FROM (SELECT id, message_id, revision_id FROM redrive_letter
         WHERE run_id = %(run)b AND state IN ('captured', 'waiting') ORDER BY id LIMIT %(among)b) l
  JOIN redrive_payload p ON p.letter_id = l.id
  LEFT JOIN redrive_revision v ON v.id = l.revision_id
 WHERE octet_length(coalesce(v.body, p.body)) <= 8192
   AND (position('S3Pointer'::bytea IN coalesce(v.body, p.body)) > 0 OR {IS_SEALED.format("coalesce(v.body, p.body)")})
   AND l.id > %(above)b
 ORDER BY l.id LIMIT %(most)b
"""  # noqa: S608  # the inserted text is a constant


@dataclass(frozen=True, slots=True)
class PossiblePointer:
    """A letter whose body may be a pointer to the real body, an object in S3."""

    id: int
    message_id: str
    body: bytes
    attributes: bytes


def possible_pointers(run: int, *, among: int, most: int) -> list[PossiblePointer]:
    """Return up to `most` letters whose bodies may be pointers into S3, among the first `among` letters of a run."""
    values = {"run": run, "among": among, "most": most, "above": 0}
    pointing: list[PossiblePointer] = []
    while len(pointing) < most and (found := rows.fetch(PossiblePointer, _POINTING, values)):
        pointing += [letter for letter in content.opened(found) if b"S3Pointer" in letter.body]
        values["above"] = found[-1].id
    return pointing[:most]
