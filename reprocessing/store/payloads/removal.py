"""Remove the content of letters permanently: payloads, edits and texts of reports, in the caller's transaction.

A letter whose content was removed cannot be sent any more. So captured and parked letters are discarded, and queued
letters whose run has ended. Letters in progress (other queued letters, and letters that are being sent) are left out.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, Final, LiteralString

from psycopg.types.json import Jsonb

from reprocessing.models.audit import AuditAct
from reprocessing.store import rows
from reprocessing.store.approvals.requests import void_edits
from reprocessing.store.ordering import lane_state
from reprocessing.store.parking_lot import decisions

# A queued letter of an ended run waits for another run, which may never come.
_IS_OPEN: Final[LiteralString] = """l.state IN ('waiting', 'sending', 'awaiting') AND (l.state <> 'waiting'
    OR NOT EXISTS (SELECT FROM redrive_run r WHERE r.id = l.run_id AND r.state IN ('finished', 'aborted')))"""

#: SQL: whether letter `l` is in progress.
_IN_PROGRESS: Final[LiteralString] = f"""(({_IS_OPEN})
    OR EXISTS (SELECT FROM redrive_attempt a WHERE a.letter_id = l.id AND a.closed_at IS NULL))"""

_LOCK_LANES = """
SELECT n.id AS lane_id FROM redrive_lane n
 WHERE n.id IN (SELECT lane_id FROM redrive_letter WHERE id = ANY(%(letters)b::bigint[]))
 ORDER BY n.id FOR UPDATE
"""

_LOCK = f"""
SELECT l.id, l.state, {_IN_PROGRESS} AS is_busy
  FROM redrive_letter l WHERE l.id = ANY(%(letters)b::bigint[]) ORDER BY l.id FOR UPDATE OF l
"""  # noqa: S608  # the inserted text is a constant

_BUSY = f"""
SELECT l.id FROM redrive_letter l WHERE l.id = ANY(%(letters)b::bigint[]) AND {_IN_PROGRESS}
"""  # noqa: S608  # as above

# Unfinished letters, and all open attempts, are read through indexes. The subquery finds the letter of each attempt by
# its id: with a join, PostgreSQL with old statistics may read all letters of the DLQ.
_COUNT_BUSY = f"""
SELECT count(*) AS n FROM (
    SELECT l.id FROM redrive_letter l WHERE l.dlq_id = %(dlq)b AND l.finished_at IS NULL AND {_IS_OPEN}
     UNION
    SELECT a.letter_id FROM redrive_attempt a
     WHERE a.closed_at IS NULL
       AND (SELECT l.dlq_id FROM redrive_letter l WHERE l.id = a.letter_id) = %(dlq)b) busy
"""  # noqa: S608  # the inserted text is a constant

# Ended letters whose content was removed before: a body that only retention deleted may still come back.
_GONE = """
SELECT l.id FROM redrive_letter l
 WHERE l.id = ANY(%(letters)b::bigint[]) AND l.state NOT IN ('captured', 'parked', 'waiting', 'sending', 'awaiting')
   AND l.body_deleted_at IS NULL
   AND NOT EXISTS (SELECT FROM redrive_payload p WHERE p.letter_id = l.id)
   AND NOT EXISTS (SELECT FROM redrive_revision v WHERE v.letter_id = l.id)
"""

_DISCARD_CAPTURED = """
UPDATE redrive_letter
   SET state = 'discarded', finished_at = redrive_now(), due_at = NULL, blocked_reason = '', run_id = NULL
 WHERE id = ANY(%(letters)b::bigint[]) AND state = 'captured'
"""

# Clears `body_deleted_at`: only a letter with this time gets its body again when its message comes back.
_FOR_GOOD = """
UPDATE redrive_letter SET body_deleted_at = NULL WHERE id = ANY(%(letters)b::bigint[]) AND body_deleted_at IS NOT NULL
"""

#: The statements that remove content, by the name under which the audit log shows their counts.
_REMOVALS: Final[dict[str, LiteralString]] = {
    "notices": """
DELETE FROM redrive_parking_queue_message
 WHERE letter_id = ANY(%(letters)b::bigint[]) AND sent_at IS NULL AND parking_event = 'parked'
""",
    "payloads": "DELETE FROM redrive_payload WHERE letter_id = ANY(%(letters)b::bigint[])",
    "edited": """
UPDATE redrive_letter SET revision_id = NULL WHERE id = ANY(%(letters)b::bigint[]) AND revision_id IS NOT NULL
""",
    "edits": "DELETE FROM redrive_revision WHERE letter_id = ANY(%(letters)b::bigint[])",
    "reports": """
UPDATE redrive_report SET message = '' WHERE message <> '' AND id IN (
    SELECT r.id FROM redrive_letter l JOIN redrive_report r ON r.public_id = l.public_id
     WHERE l.id = ANY(%(letters)b::bigint[])
    UNION SELECT r.id FROM redrive_letter l JOIN redrive_report r ON r.message_id = l.message_id
     WHERE l.id = ANY(%(letters)b::bigint[])
    UNION SELECT r.id FROM redrive_attempt a JOIN redrive_report r ON r.message_id = a.sent_message_id
     WHERE a.letter_id = ANY(%(letters)b::bigint[]))
""",
    "answers": """
UPDATE redrive_attempt SET detail = split_part(detail, ': ' || chr(26), 1)
 WHERE letter_id = ANY(%(letters)b::bigint[]) AND strpos(detail, chr(26)) > 0
""",
    "refusals": """
UPDATE redrive_letter SET detail = split_part(detail, ': ' || chr(26), 1)
 WHERE id = ANY(%(letters)b::bigint[]) AND strpos(detail, chr(26)) > 0
""",
}

_ALLOW: Final[LiteralString] = "SET LOCAL redrive.erases = 'on'"

_RECORD = """
INSERT INTO redrive_audit_entry (act, letter_id, dlq_id, by, reason, at, before, after)
SELECT %(act)b, l.id, l.dlq_id, %(by)b, %(reason)b, redrive_now(), jsonb_build_object('state', s.state),
       jsonb_build_object('state', l.state) || %(after)b::jsonb
  FROM unnest(%(letters)b::bigint[], %(states)b::text[]) AS s(letter_id, state)
  JOIN redrive_letter l ON l.id = s.letter_id ORDER BY l.id
"""


@dataclass(frozen=True, slots=True)
class Removed:
    """What `remove_content` did.

    Attributes:
        letters: ids of letters whose content was removed.
        busy: ids of letters in progress, which were not changed.
        counts: numbers of changed rows, by the kind of the removed content.
        gone: ids of letters whose content a person had shredded before, so that nothing was left to remove.
    """

    letters: list[int] = field(default_factory=list)
    busy: list[int] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    gone: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Locked:
    id: int
    state: str
    is_busy: bool


def letters_in_progress(letters: Collection[int]) -> list[int]:
    """Return the ids of the letters that are queued, being sent, or awaiting their outcome.

    Queued letters of runs that have ended are not in progress.
    """
    return rows.column(int, _BUSY, {"letters": list(letters)})


def count_in_progress(dlq: int) -> int:
    """Return how many letters of a DLQ are in progress (`letters_in_progress`)."""
    return rows.value(int, _COUNT_BUSY, {"dlq": dlq})


def destroyed_before(letters: Collection[int]) -> list[int]:
    """Return the ids of those finished letters whose payload and edits were removed before (not by retention)."""
    return rows.column(int, _GONE, {"letters": list(letters)})


def remove_content(
    letters: Collection[int], act: AuditAct, *, by: str, reason: str, after: dict[str, Any] | None = None
) -> Removed:
    """Remove payloads, edits and report texts of these letters; discard those that are captured or parked.

    Letters in progress are not changed. For each changed letter, an audit log entry of the kind `act` is written, but
    not for letters that are shredded again. `after`: values to add to each entry.
    """
    rows.execute(_LOCK_LANES, {"letters": list(letters)})
    found = rows.fetch(_Locked, _LOCK, {"letters": list(letters)})
    busy = [letter.id for letter in found if letter.is_busy]
    free = [letter for letter in found if letter.id not in set(busy)]
    ids = [letter.id for letter in free]
    if not ids:
        return Removed(busy=busy)
    gone = set(destroyed_before(ids)) if act is AuditAct.SHREDDED else set[int]()
    touched = decisions.discard_letters(ids, states=("parked", "waiting"))
    rows.execute(_DISCARD_CAPTURED, {"letters": ids})
    rows.execute(_FOR_GOOD, {"letters": ids})
    void_edits(ids, "The content of the message was removed.")
    rows.execute(_ALLOW, {})
    counts = {name: rows.execute(statement, {"letters": ids}) for name, statement in _REMOVALS.items()}
    gone = set() if counts["reports"] + counts["answers"] + counts["refusals"] else gone
    free = [letter for letter in free if letter.id not in gone]
    ids = [letter.id for letter in free]
    rows.execute(_RECORD, {
        "letters": ids, "states": [letter.state for letter in free], "act": act.value, "by": by, "reason": reason,
        "after": Jsonb(after or {}),
    })  # fmt: skip
    lane_state.advance(sorted(touched), [None] * len(touched))
    return Removed(ids, busy, {"messages": len(ids)} | counts, sorted(gone))
