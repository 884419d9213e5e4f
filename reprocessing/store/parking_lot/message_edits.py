"""Edit one letter: read it, lock it, and add a revision (edited bytes, which are sent instead of the captured ones)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from psycopg.types.json import Jsonb

from reprocessing.models.audit import AuditAct
from reprocessing.store import rows
from reprocessing.store.parking_lot import decisions
from reprocessing.store.payloads import content
from reprocessing.store.routing.routing_decisions import BY_HAND


@dataclass(frozen=True, slots=True)
class EditableLetter:
    """A letter with the bytes that would be sent, and with values by which a page detects that the letter has changed.

    Attributes:
        revision: number of the revision that would be sent; 0: the captured bytes.
        largest: highest number of bytes that the target accepts, including attributes.
        ordering_key: the key; None: the letter has no key, or no place in a lane yet.
        placed: whether the letter has a place in a lane; an edit does not change the place.
        led: whether the letter's source queue is known; if not, the letter has no target.
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
    led: bool


@dataclass(frozen=True, slots=True)
class NewRevision:
    """The number, size and body hash of a new revision of a letter."""

    no: int
    size: int
    body_hash: bytes


@dataclass(frozen=True, slots=True)
class LastAction:
    """The last audit log entry of a letter."""

    act: str
    by: str
    reason: str
    at: datetime


_STANDS = """
SELECT l.id AS letter_id, l.dlq_id, l.message_id, l.state, l.finished_at, coalesce(v.no, 0) AS revision, l.size,
       coalesce(v.body, p.body) AS body, coalesce(v.attributes, p.attributes) AS attributes, p.system,
       least(coalesce(t.size_limit, 1048576), 1048576) AS largest, l.ordering_key,
       num_nonnulls(l.lane_id, l.key_hash) > 0 AS placed, l.source_id IS NOT NULL AS led
  FROM redrive_letter l JOIN redrive_payload p ON p.letter_id = l.id
  LEFT JOIN redrive_revision v ON v.id = l.revision_id LEFT JOIN redrive_target t ON t.id = l.target_id
 WHERE l.id = %(letter)b
"""

# A FIFO target must not drop the edited message as a repetition, so `epoch` is raised: it is part of the deduplication
# id. Rules decide again, unless a person set the target.
_REVISE = f"""
WITH made AS (
    INSERT INTO redrive_revision (letter_id, no, body, attributes, body_hash, previous_body_hash, size,
           idempotency_key, by,
                                  reason, at)
    SELECT l.id, 1 + coalesce((SELECT max(no) FROM redrive_revision WHERE letter_id = l.id), 0), %(body)b,
           %(attributes)b, %(digest)b, l.body_hash, %(size)b::int, %(key)b::text, %(by)b, %(reason)b,
           redrive_now()
      FROM redrive_letter l WHERE l.id = %(letter)b AND l.state = 'parked'
    RETURNING id, no, letter_id, body_hash, size, idempotency_key
), moved AS (
    UPDATE redrive_letter l
       SET revision_id = m.id, body_hash = m.body_hash, size = m.size, epoch = l.epoch + 1,
           idempotency_key = coalesce(m.idempotency_key, l.idempotency_key),
           rulebook_version = CASE WHEN l.rulebook_version < {BY_HAND} THEN 0 ELSE l.rulebook_version END
      FROM made m WHERE l.id = m.letter_id
)
SELECT no, size, body_hash FROM made
"""  # noqa: S608  # the inserted text is a constant

_RECORD = """
INSERT INTO redrive_audit_entry (act, letter_id, dlq_id, by, reason, at, before, after)
SELECT %(act)b, l.id, l.dlq_id, %(by)b, %(reason)b, redrive_now(), %(before)b::jsonb, %(after)b::jsonb
  FROM redrive_letter l WHERE l.id = %(letter)b
"""

_LAST = """
SELECT act, by, reason, at FROM redrive_audit_entry
 WHERE letter_id = %(letter)b AND act NOT IN ('revealed', 'exported') ORDER BY at DESC, id DESC LIMIT 1
"""


def read_letter(letter: int) -> EditableLetter | None:
    """Return a letter with the bytes that would be sent; None: its bytes are deleted."""
    found = content.opened(rows.fetch(EditableLetter, _STANDS, {"letter": letter}))
    return found[0] if found else None


def lock_letter(letter: int) -> None:
    """Lock a letter until the commit; first lock its lane."""
    decisions.lock_letters([letter], need_lane=False)


def add_revision(  # noqa: PLR0913  # each by its name
    letter: int, *, body: bytes, attributes: bytes, digest: bytes, size: int, key: str | None, by: str, reason: str
) -> NewRevision:
    """Add a revision to a locked, parked letter. From now on, rules read the revision, and the revision is sent.

    `body`, `attributes`: sealed, if payloads are encrypted. `digest`: of the body (`content.digests`). `size`: bytes of
    body and packed attributes as SQS counts them. `key`: new idempotency key; None: unchanged.
    """
    values = {
        "letter": letter, "body": body, "attributes": attributes, "digest": digest, "size": size, "key": key, "by": by,
        "reason": reason,
    }  # fmt: skip
    return rows.fetch(NewRevision, _REVISE, values)[0]


def record_action(  # noqa: PLR0913  # each by its name
    letter: int, act: AuditAct, *, by: str, reason: str, before: Mapping[str, Any], after: Mapping[str, Any]
) -> None:
    """Write an audit log entry for one letter, in the transaction of the change."""
    values = {
        "letter": letter, "act": act.value, "by": by, "reason": reason, "before": Jsonb(dict(before)),
        "after": Jsonb(dict(after)),
    }  # fmt: skip
    rows.execute(_RECORD, values)


def last_action(letter: int) -> LastAction | None:
    """Return the last audit log entry of a letter, except entries of views and exports; None: there is none."""
    return rows.first(LastAction, _LAST, {"letter": letter})
