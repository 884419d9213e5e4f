"""Delete letters, waves, reports, bulk actions and failure groups past their retention (`history`, in seconds)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, LiteralString

from django.db import transaction

from reprocessing.store import rows
from reprocessing.store.replay.settlement_effects import COPY_UNTIL

# A letter is kept while SQS may still deliver a copy: for the DLQ's retention plus a day after the last copy was
# deleted (or became visible, if it could not be deleted). A letter is also kept while an attempt is open, while an
# attempt with unknown outcome may come back, and while a duplicate of it is stored. The clock is a subquery, so that
# only letters past their history are read, by an index. Each DLQ has a statement of its own, because the index begins
# with the DLQ. Letters up to the last one of the purge's statement before are not read again.
_CHOOSE = f"""
SELECT l.id, l.finished_at AS at FROM redrive_letter l JOIN redrive_dlq d ON d.id = l.dlq_id
 WHERE l.dlq_id = %(dlq)b
   AND l.state IN ('delivered', 'duplicate', 'discarded') AND l.state <> 'parked'  -- the index's condition
   AND l.finished_at < (SELECT redrive_now() - make_interval(secs => %(history)b::float8))
   AND (l.finished_at, l.id) > (coalesce(%(after)b::timestamptz, '-infinity'), %(after_id)b::bigint)
   AND NOT EXISTS (SELECT FROM redrive_dlq_copy c WHERE c.letter_id = l.id
                    AND coalesce(c.gone_at, c.visible_until)
                        > redrive_now() - make_interval(secs => d.retention) - interval '1 day')
   AND NOT EXISTS (SELECT FROM redrive_letter t WHERE t.duplicate_of_id = l.id)
   AND NOT EXISTS (SELECT FROM redrive_attempt a WHERE a.letter_id = l.id AND a.closed_at IS NULL)
   AND {COPY_UNTIL} IS NULL
 ORDER BY l.finished_at, l.id LIMIT %(limit)b FOR UPDATE OF l SKIP LOCKED
"""  # noqa: S608  # the inserted text is a constant

#: Permits deleting audit log entries until the end of the transaction.
ALLOW_AUDIT_DELETE: Final[LiteralString] = "SET LOCAL redrive.forgets = 'on'"

_FORGET: Final[tuple[LiteralString, ...]] = (
    "DELETE FROM redrive_claim WHERE letter_id = ANY(%(ids)b::bigint[])",
    "DELETE FROM redrive_dlq_copy WHERE letter_id = ANY(%(ids)b::bigint[])",
    "DELETE FROM redrive_restore_doubt WHERE letter_id = ANY(%(ids)b::bigint[])",
    "DELETE FROM redrive_parking_queue_message WHERE letter_id = ANY(%(ids)b::bigint[])",
    "DELETE FROM redrive_audit_entry WHERE letter_id = ANY(%(ids)b::bigint[])",
    "DELETE FROM redrive_attempt WHERE letter_id = ANY(%(ids)b::bigint[])",
    "DELETE FROM redrive_search_entry WHERE letter_id = ANY(%(ids)b::bigint[])",
    "DELETE FROM redrive_payload WHERE letter_id = ANY(%(ids)b::bigint[])",
    "DELETE FROM redrive_revision WHERE letter_id = ANY(%(ids)b::bigint[])",
    "DELETE FROM redrive_letter WHERE id = ANY(%(ids)b::bigint[])",
)

# The lane of a letter without ordering key is deleted with the letter. A key's lane stays: its highest sent sequence
# shows whether a later letter is stale.
_LANES = """
DELETE FROM redrive_lane n
 WHERE n.id = ANY(%(lanes)b::bigint[]) AND n.single AND n.phase = 'idle'
   AND NOT EXISTS (SELECT FROM redrive_letter l WHERE l.lane_id = n.id)
"""

# An automatic run never ends, so its settled waves are deleted when their attempts are deleted.
_WAVES = """
DELETE FROM redrive_wave w
 WHERE w.settled_at < redrive_now() - make_interval(secs => %(history)b::float8)
   AND NOT EXISTS (SELECT FROM redrive_attempt a WHERE a.wave_id = w.id)
"""

# Reports on a letter are kept as long as the letter, other reports for `history` seconds. Reports up to the last one of
# the purge's statement before are not read again.
_REPORTS = """
DELETE FROM redrive_report WHERE id IN (
    SELECT r.id FROM redrive_report r
     WHERE r.received_at < (SELECT redrive_now() - make_interval(secs => %(history)b::float8))
       AND (r.received_at, r.id) > (coalesce(%(after)b::timestamptz, '-infinity'), %(after_id)b::bigint)
       AND NOT EXISTS (SELECT FROM redrive_letter l WHERE l.public_id = r.public_id)
       AND NOT EXISTS (SELECT FROM redrive_attempt a WHERE a.sent_message_id = r.message_id)
       AND NOT EXISTS (SELECT FROM redrive_dlq d JOIN redrive_letter l ON l.dlq_id = d.id
                        WHERE l.message_id = r.message_id)
     ORDER BY r.received_at, r.id LIMIT %(limit)b)
RETURNING id, received_at AS at
"""

# Groups are locked before they are checked, because adding a letter locks the group too. What people decided is kept:
# ignored and renamed groups, and groups that a person merged.
_EMPTY_GROUPS = """
SELECT id FROM redrive_failure_group
 WHERE last_at BETWEEN '-infinity' AND (SELECT redrive_now() - make_interval(secs => %(history)b::float8))
   AND status <> 'ignored'
   AND name = '' AND (merged_into_id IS NULL OR NOT EXISTS (
        SELECT FROM redrive_audit_entry a WHERE a.group_id = redrive_failure_group.id))
   AND NOT EXISTS (SELECT FROM redrive_failure_group m WHERE m.merged_into_id = redrive_failure_group.id)
   AND NOT EXISTS (SELECT FROM redrive_letter l WHERE l.group_id = redrive_failure_group.id)
 ORDER BY last_at LIMIT %(limit)b FOR UPDATE SKIP LOCKED
"""

_STILL_EMPTY = """
SELECT id FROM unnest(%(ids)b::bigint[]) AS g(id)
 WHERE NOT EXISTS (SELECT FROM redrive_letter l WHERE l.group_id = g.id)
"""

_GROUPS: Final[tuple[LiteralString, ...]] = (
    "DELETE FROM redrive_audit_entry WHERE group_id = ANY(%(ids)b::bigint[])",
    "DELETE FROM redrive_failure_group WHERE id = ANY(%(ids)b::bigint[])",
)


# A bulk action is kept as long as audit log entries of letters name it.
_OPERATIONS = """
SELECT o.id FROM redrive_bulk_action o
 WHERE o.finished_at < redrive_now() - make_interval(secs => %(history)b::float8)
   AND NOT EXISTS (SELECT FROM redrive_audit_entry r WHERE r.operation_id = o.id AND r.letter_id IS NOT NULL)
 ORDER BY o.finished_at LIMIT %(limit)b FOR UPDATE SKIP LOCKED
"""

_OF_OPERATIONS: Final[tuple[LiteralString, ...]] = (
    "DELETE FROM redrive_audit_entry WHERE operation_id = ANY(%(ids)b::bigint[])",
    "DELETE FROM redrive_bulk_action WHERE id = ANY(%(ids)b::bigint[])",
)


@dataclass(frozen=True, slots=True)
class ExpiredRow:
    """A row past its retention.

    Attributes:
        id: the row's id.
        at: when its retention began: when the letter finished, or the report was received.
    """

    id: int
    at: datetime


def begin_after(row: ExpiredRow | None) -> dict[str, Any]:
    """Return parameters of a statement that reads rows in the order of their times, and begins after this row."""
    return {"after": row.at if row else None, "after_id": row.id if row else 0}


def delete_letters(dlq: int, *, history: float, limit: int, after: ExpiredRow | None = None) -> list[ExpiredRow]:
    """Delete up to `limit` letters of a DLQ that were finished at least `history` seconds ago.

    Return them, the oldest first. If `after` is given, begin after this letter.
    """
    with transaction.atomic():
        values = {"dlq": dlq, "history": history, "limit": limit, **begin_after(after)}
        if chosen := rows.fetch(ExpiredRow, _CHOOSE, values):
            ids = [letter.id for letter in chosen]
            lanes = rows.column(
                int,
                "SELECT DISTINCT lane_id FROM redrive_letter WHERE id = ANY(%(ids)b::bigint[]) AND lane_id IS NOT NULL",
                {"ids": ids},
            )
            rows.execute(ALLOW_AUDIT_DELETE, {})
            for statement in _FORGET:
                rows.execute(statement, {"ids": ids})
            rows.execute(_LANES, {"lanes": lanes})
    return chosen


def delete_waves(*, history: float) -> int:
    """Delete waves (parts of runs) that ended at least `history` seconds ago, if their attempts are deleted.

    Return how many were deleted.
    """
    return rows.execute(_WAVES, {"history": history})


def delete_reports(*, history: float, limit: int, after: ExpiredRow | None = None) -> list[ExpiredRow]:
    """Delete up to `limit` consumer reports older than `history` seconds that are about no stored letter.

    Return them, the oldest first. If `after` is given, begin after this report.
    """
    deleted = rows.fetch(ExpiredRow, _REPORTS, {"history": history, "limit": limit, **begin_after(after)})
    return sorted(deleted, key=lambda report: (report.at, report.id))


def delete_bulk_actions(*, history: float, limit: int) -> int:
    """Delete up to `limit` bulk actions that ended at least `history` seconds ago; return how many.

    A bulk action is kept while an audit log entry of a letter refers to it.
    """
    with transaction.atomic():
        ids = rows.column(int, _OPERATIONS, {"history": history, "limit": limit})
        if ids:
            rows.execute(ALLOW_AUDIT_DELETE, {})
            for statement in _OF_OPERATIONS:
                rows.execute(statement, {"ids": ids})
    return len(ids)


def delete_groups(*, history: float, limit: int) -> int:
    """Delete up to `limit` failure groups without letters whose last failure is `history` s ago; return how many.

    Groups that a person ignored, renamed or merged are kept.
    """
    with transaction.atomic():
        chosen = rows.column(int, _EMPTY_GROUPS, {"history": history, "limit": limit})
        ids = rows.column(int, _STILL_EMPTY, {"ids": chosen})
        if ids:
            rows.execute(ALLOW_AUDIT_DELETE, {})
            for statement in _GROUPS:
                rows.execute(statement, {"ids": ids})
    return len(ids)
