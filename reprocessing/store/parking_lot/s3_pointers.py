"""Find letters whose body may only be a pointer to an object in S3 (SQS extended client)."""

from __future__ import annotations

from dataclasses import dataclass

from reprocessing.store import rows

# A pointer has a few hundred bytes, so large bodies are not searched.
_POINTING = """
SELECT l.message_id, coalesce(v.body, p.body) AS body, coalesce(v.attributes, p.attributes) AS attributes
  FROM (SELECT id, message_id, revision_id FROM redrive_letter
         WHERE run_id = %(run)b AND state IN ('captured', 'waiting') ORDER BY id LIMIT %(among)b) l
  JOIN redrive_payload p ON p.letter_id = l.id
  LEFT JOIN redrive_revision v ON v.id = l.revision_id
 WHERE octet_length(coalesce(v.body, p.body)) <= 8192 AND position('S3Pointer'::bytea IN coalesce(v.body, p.body)) > 0
 ORDER BY l.id LIMIT %(most)b
"""


@dataclass(frozen=True, slots=True)
class PossiblePointer:
    """A letter whose body may be a pointer."""

    message_id: str
    body: bytes
    attributes: bytes


def possible_pointers(run: int, *, among: int, most: int) -> list[PossiblePointer]:
    """Return at most `most` of the first `among` letters of a run whose bodies may be pointers into S3."""
    return rows.fetch(PossiblePointer, _POINTING, {"run": run, "among": among, "most": most})
