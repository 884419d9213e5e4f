"""Edit letters: read and lock letters, and add revisions (edited bytes, sent instead of the captured bytes)."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, LiteralString

from psycopg.types.json import Jsonb

from reprocessing.domain.errors import PayloadDestroyed
from reprocessing.models.audit import AuditAct
from reprocessing.store import rows
from reprocessing.store.parking_lot import decisions
from reprocessing.store.payloads import content
from reprocessing.store.routing.routing_decisions import BY_HAND


@dataclass(frozen=True, slots=True)
class EditableLetter:
    """A letter with the bytes that would be sent.

    Attributes:
        revision: number of the revision that would be sent; 0: the captured bytes.
        largest: highest number of bytes that the target accepts, including attributes.
        ordering_key: the key; None: the letter has no key, or no place in a lane yet.
        placed: whether the letter has a place in a lane; an edit does not change the place.
        has_source: whether the letter's source queue is known; else the letter has no target.
    """

    letter_id: int
    dlq_id: int
    message_id: str
    state: str
    finished_at: datetime | None
    revision: int
    size: int
    body: bytes = field(repr=False)
    attributes: bytes = field(repr=False)
    system: dict[str, Any] = field(repr=False)
    largest: int
    ordering_key: str | None
    placed: bool
    has_source: bool


@dataclass(frozen=True, slots=True)
class WrittenEdit:
    """The content of a new revision of a letter.

    Attributes:
        body, attributes: the edited bytes; encrypted, if the service encrypts payloads.
        digest: the digest of the edited body, from `content.digests`.
        size: number of bytes of body and attributes, as SQS counts them.
        key: new idempotency key; None: unchanged.
    """

    letter_id: int
    body: bytes = field(repr=False)
    attributes: bytes = field(repr=False)
    digest: bytes
    size: int
    key: str | None


@dataclass(frozen=True, slots=True)
class NewRevision:
    """The number, size and body hash of a new revision of a letter."""

    letter_id: int
    no: int
    size: int
    body_hash: bytes


@dataclass(frozen=True, slots=True)
class LetterVersion:
    """Values that show whether a letter has changed: its state, when it finished, and its last edit."""

    letter_id: int
    state: str
    finished_at: datetime | None
    revision: int
    edited_at: datetime | None


@dataclass(frozen=True, slots=True)
class EditRecord:
    """The values of an audit log entry about one edit, as JSON objects, without content of the message."""

    letter_id: int
    before: Mapping[str, Any]
    after: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class LastAction:
    """The last audit log entry of a letter."""

    act: str
    by: str
    reason: str
    at: datetime


_STANDS: Final[LiteralString] = """
SELECT l.id AS letter_id, l.dlq_id, l.message_id, l.state, l.finished_at, coalesce(v.no, 0) AS revision, l.size,
       coalesce(v.body, p.body) AS body, coalesce(v.attributes, p.attributes) AS attributes, p.system,
       least(coalesce(t.size_limit, 1048576), 1048576) AS largest, l.ordering_key,
       num_nonnulls(l.lane_id, l.key_hash) > 0 AS placed, l.source_id IS NOT NULL AS has_source
  FROM redrive_letter l JOIN redrive_payload p ON p.letter_id = l.id
  LEFT JOIN redrive_revision v ON v.id = l.revision_id LEFT JOIN redrive_target t ON t.id = l.target_id
 WHERE l.id = ANY(%(letters)b::bigint[]) ORDER BY l.id
"""

_VERSIONS = """
SELECT l.id AS letter_id, l.state, l.finished_at, coalesce(v.no, 0) AS revision, v.at AS edited_at
  FROM redrive_letter l LEFT JOIN redrive_revision v ON v.id = l.revision_id WHERE l.id = ANY(%(letters)b::bigint[])
"""

# `epoch` is a part of the deduplication id. It is raised, so that a FIFO target does not drop the edited message as a
# repetition. Rules decide about the letter again, unless a person set the target.
_REVISE = f"""
WITH made AS (
    INSERT INTO redrive_revision (letter_id, no, body, attributes, body_hash, previous_body_hash, size,
           idempotency_key, by, reason, at)
    SELECT l.id, 1 + coalesce((SELECT max(no) FROM redrive_revision WHERE letter_id = l.id), 0), e.body, e.attributes,
           e.digest, l.body_hash, e.size, e.key, %(by)b, %(reason)b, redrive_now()
      FROM unnest(%(letter_id)b::bigint[], %(body)b::bytea[], %(attributes)b::bytea[], %(digest)b::bytea[],
                  %(size)b::int[], %(key)b::text[]) AS e(letter_id, body, attributes, digest, size, key)
      JOIN redrive_letter l ON l.id = e.letter_id AND l.state = 'parked'
    RETURNING id, no, letter_id, body_hash, size, idempotency_key
), moved AS (
    UPDATE redrive_letter l
       SET revision_id = m.id, body_hash = m.body_hash, size = m.size, epoch = l.epoch + 1,
           idempotency_key = coalesce(m.idempotency_key, l.idempotency_key),
           rulebook_version = CASE WHEN l.rulebook_version < {BY_HAND} THEN 0 ELSE l.rulebook_version END
      FROM made m WHERE l.id = m.letter_id
)
SELECT letter_id, no, size, body_hash FROM made ORDER BY letter_id
"""  # noqa: S608  # the inserted text is a constant

_RECORD = """
INSERT INTO redrive_audit_entry (act, letter_id, dlq_id, by, reason, at, before, after)
SELECT %(act)b, l.id, l.dlq_id, %(by)b, %(reason)b, redrive_now(), %(before)b::jsonb, %(after)b::jsonb
  FROM redrive_letter l WHERE l.id = %(letter)b
"""

_RECORD_ALL = """
INSERT INTO redrive_audit_entry (act, letter_id, dlq_id, by, reason, at, before, after)
SELECT %(act)b, l.id, l.dlq_id, %(by)b, %(reason)b, redrive_now(), '{}'::jsonb, '{}'::jsonb
  FROM redrive_letter l WHERE l.id = ANY(%(letters)b::bigint[]) ORDER BY l.id
"""

_RECORD_EDITS = """
INSERT INTO redrive_audit_entry (act, letter_id, dlq_id, by, reason, at, before, after, operation_id)
SELECT 'edited', l.id, l.dlq_id, %(by)b, %(reason)b, redrive_now(), e.before::jsonb, e.after::jsonb,
       %(operation)b::bigint
  FROM unnest(%(letters)b::bigint[], %(before)b::text[], %(after)b::text[]) AS e(letter_id, before, after)
  JOIN redrive_letter l ON l.id = e.letter_id ORDER BY l.id
"""

_LAST = """
SELECT act, by, reason, at FROM redrive_audit_entry
 WHERE letter_id = %(letter)b AND act NOT IN ('revealed', 'exported') ORDER BY at DESC, id DESC LIMIT 1
"""


def read_letter(letter: int) -> EditableLetter | None:
    """Return a letter with its bytes; None: the bytes are deleted."""
    found = content.opened(rows.fetch(EditableLetter, _STANDS, {"letters": [letter]}))
    return found[0] if found else None


def read_letters(letters: Collection[int]) -> tuple[list[EditableLetter], set[int]]:
    """Return letters with their bytes, and the ids of the letters whose data key a person destroyed.

    Letters whose bytes are deleted are left out.

    Raises:
        PayloadUnreadable: a key is not available now, for example because AWS KMS does not answer.
    """
    found = rows.fetch(EditableLetter, _STANDS, {"letters": list(letters)})
    try:
        return content.opened(found), set()
    except PayloadDestroyed:
        readable, _ = content.opened_or_why(found)
        return readable, {one.letter_id for one in found} - {one.letter_id for one in readable}


def read_versions(letters: Collection[int]) -> dict[int, LetterVersion]:
    """Return, by letter id, the values that show whether a letter has changed."""
    return {one.letter_id: one for one in rows.fetch(LetterVersion, _VERSIONS, {"letters": list(letters)})}


def lock_letter(letter: int) -> None:
    """Lock a letter until the commit; first lock its lane."""
    decisions.lock_letters([letter], need_lane=False)


def add_revisions(edits: Sequence[WrittenEdit], *, by: str, reason: str) -> list[NewRevision]:
    """Add a revision (edited bytes) to each of these locked letters that is parked; return the new revisions.

    From now on, rules read the revision, and the revision is sent.
    """
    return rows.fetch(NewRevision, _REVISE, rows.arrays(WrittenEdit, edits) | {"by": by, "reason": reason})


def record_edits(records: Sequence[EditRecord], *, by: str, reason: str, operation: int | None) -> None:
    """Write an audit log entry for each edit, in the transaction of the edits. `operation`: id of the bulk action."""
    rows.execute(_RECORD_EDITS, {
        "letters": [record.letter_id for record in records], "by": by, "reason": reason, "operation": operation,
        "before": [json.dumps(dict(record.before)) for record in records],
        "after": [json.dumps(dict(record.after)) for record in records],
    })  # fmt: skip


def record_action(  # noqa: PLR0913  # each by its name
    letter: int, act: AuditAct, *, by: str, reason: str, before: Mapping[str, Any], after: Mapping[str, Any]
) -> None:
    """Write an audit log entry for one letter, in the transaction of the change."""
    values = {
        "letter": letter, "act": act.value, "by": by, "reason": reason, "before": Jsonb(dict(before)),
        "after": Jsonb(dict(after)),
    }  # fmt: skip
    rows.execute(_RECORD, values)


def record_views(letters: Collection[int], *, by: str, reason: str) -> None:
    """Write, for each of these letters, an audit log entry that a person saw values of the letter's content."""
    values = {"letters": list(letters), "act": AuditAct.REVEALED.value, "by": by, "reason": reason}
    rows.execute(_RECORD_ALL, values)


def last_action(letter: int) -> LastAction | None:
    """Return the last audit log entry of a letter, except entries of views and exports; None: there is none."""
    return rows.first(LastAction, _LAST, {"letter": letter})
