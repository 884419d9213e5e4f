"""Delete the bodies of letters that finished more than `keep_bodies` days ago. The letters themselves are kept."""

from __future__ import annotations

from typing import Final, LiteralString

from django.db import transaction

from reprocessing.store import rows
from reprocessing.store.maintenance.retention import ALLOW_AUDIT_DELETE, ExpiredRow, begin_after
from reprocessing.store.replay.settlement_effects import COPY_UNTIL

# The time before which letters must have finished. A subquery, so that `_STORE_PROGRESS` has the same time twice: if it
# waits for a transaction that changes `keep_bodies`, PostgreSQL computes subqueries from the old value, and other
# expressions from the new value. A mark from the new value would pass over bodies that the old value keeps.
_LIMIT: Final[LiteralString] = (
    "(SELECT redrive_now() - make_interval(days => keep_bodies) FROM redrive_dlq WHERE id = %(dlq)b)"
)

# Letters of the DLQ that finished more than `keep_bodies` days ago and still have their bodies. A letter that a person
# erased or shredded has no body, and gets none if its message comes back. The condition on 'parked', which the list of
# states implies, lets PostgreSQL use the index ended_letters_by_dlq_and_time. There is only one lower bound: with two,
# PostgreSQL might read the index from the lesser one.
_PAST: Final[LiteralString] = f"""
  FROM redrive_letter l
 WHERE l.dlq_id = %(dlq)b AND l.state IN ('delivered', 'duplicate', 'discarded') AND l.state <> 'parked'
   AND l.finished_at < {_LIMIT}
   AND (l.finished_at, l.id) > (coalesce(
       %(after)b::timestamptz, (SELECT bodies_deleted_through FROM redrive_dlq WHERE id = %(dlq)b), '-infinity'
       ), %(after_id)b::bigint)
   AND l.body_deleted_at IS NULL AND EXISTS (SELECT FROM redrive_payload p WHERE p.letter_id = l.id)
"""  # noqa: S608  # the inserted text is a constant

# The body stays while the letter may be sent again: an attempt's outcome is open, or SQS may deliver its copy again.
_CHOOSE = f"""
SELECT l.id, l.finished_at AS at {_PAST}
   AND NOT EXISTS (SELECT FROM redrive_attempt a WHERE a.letter_id = l.id AND a.closed_at IS NULL)
   AND {COPY_UNTIL} IS NULL
 ORDER BY l.finished_at, l.id LIMIT %(limit)b FOR UPDATE OF l SKIP LOCKED
"""  # noqa: S608  # the inserted texts are constants

# Edits are deleted with the body. The audit log still has who edited a letter, and why.
_DELETE: Final[tuple[LiteralString, ...]] = (
    "DELETE FROM redrive_payload WHERE letter_id = ANY(%(ids)b::bigint[])",
    """
UPDATE redrive_letter SET body_deleted_at = redrive_now(), revision_id = NULL WHERE id = ANY(%(ids)b::bigint[])
""",
    "DELETE FROM redrive_revision WHERE letter_id = ANY(%(ids)b::bigint[])",
)

# PostgreSQL would read all these letters for min(l.finished_at), because of the subquery on payloads. An hour is kept
# back for letters whose transactions have not ended: with `keep_bodies` 0, they may have finished before now.
_STORE_PROGRESS = f"""
UPDATE redrive_dlq SET bodies_deleted_through = least(redrive_now() - interval '1 hour', coalesce(
       (SELECT l.finished_at {_PAST} ORDER BY l.finished_at, l.id LIMIT 1), {_LIMIT}))
 WHERE id = %(dlq)b AND keep_bodies IS NOT NULL
"""  # noqa: S608  # as above

_DLQS = "SELECT id FROM redrive_dlq WHERE keep_bodies IS NOT NULL ORDER BY id"


def dlqs_with_body_retention() -> list[int]:
    """Return the ids of the DLQs that have the setting `keep_bodies`."""
    return rows.column(int, _DLQS, {})


def delete_bodies(dlq: int, *, limit: int, after: ExpiredRow | None = None) -> list[ExpiredRow]:
    """Delete payloads and edits of up to `limit` letters that finished over `keep_bodies` days ago.

    Return these letters, the oldest first. If `after` is given, begin after this letter.
    """
    with transaction.atomic():
        chosen = rows.fetch(ExpiredRow, _CHOOSE, {"dlq": dlq, "limit": limit, **begin_after(after)})
        if chosen:
            rows.execute(ALLOW_AUDIT_DELETE, {})
            for statement in _DELETE:
                rows.execute(statement, {"ids": [letter.id for letter in chosen]})
    return chosen


def store_deleted_through(dlq: int) -> None:
    """Record up to which time the DLQ's bodies are deleted, so that `delete_bodies` does not read older letters."""
    rows.execute(_STORE_PROGRESS, {"dlq": dlq, **begin_after(None)})
