"""Store bulk actions: one action on all letters that a filter matches, done by a worker in batches of 500.

A worker has a lease on a bulk action until the time `leased_until`, and renews the lease with each batch. If another
worker took the lease meanwhile, the first worker stops, so that only one worker changes letters. If a worker is killed,
another worker takes over when the lease has ended.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, LiteralString
from uuid import UUID

from reprocessing.domain.approvals.requested_action import ActionKind, RequestedAction
from reprocessing.domain.errors import SelectionChanged
from reprocessing.domain.parking_lot.bulk_edit import PATCH, BulkEdit
from reprocessing.domain.parking_lot.message_filter import MessageFilter
from reprocessing.domain.payloads.sealing import Part
from reprocessing.models.audit import AuditAct
from reprocessing.models.parking_lot import BulkAction, BulkActionKind
from reprocessing.store import rows
from reprocessing.store.approvals import frozen, guard, limits
from reprocessing.store.parking_lot.filtered_letters import MAX_COUNT
from reprocessing.store.payloads import content
from reprocessing.store.search import filter_conditions, stored_filters

#: Number of letters in one transaction.
BATCH_LETTERS: Final = 500
#: Highest number of skipped letters of a bulk action whose reasons are stored, to be shown to people.
MAX_SKIP_REASONS: Final = 20
#: Length of a worker's lease on a bulk action (s); after it, another worker takes over.
LEASE_SECONDS: Final = 20.0

#: The kind of audit log entry for each kind of bulk action.
_NOTED: Final = {
    BulkActionKind.RELEASE: AuditAct.RELEASED, BulkActionKind.DISCARD: AuditAct.DISCARDED,
    BulkActionKind.RESTORE: AuditAct.RESTORED,
    BulkActionKind.ASSIGN: AuditAct.ASSIGNED, BulkActionKind.NOTE: AuditAct.NOTED,
    BulkActionKind.EDIT: AuditAct.EDITED,
}  # fmt: skip


#: For each kind of bulk action, its `ActionKind` and the action's title; None: it needs no second person.
_ACTIONS: Final[Mapping[BulkActionKind, tuple[ActionKind, str] | None]] = {
    BulkActionKind.RELEASE: (ActionKind.RELEASE, "Release all parked messages that match a filter"),
    BulkActionKind.DISCARD: (ActionKind.DISCARD, "Discard all parked messages that match a filter"),
    BulkActionKind.RESTORE: (ActionKind.RESTORE, "Restore all discarded messages that match a filter"),
    BulkActionKind.EDIT: (ActionKind.EDIT, "Edit all parked messages that match a filter"),
    BulkActionKind.ASSIGN: None, BulkActionKind.NOTE: None,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class LeasedAction:
    """A running bulk action, on which a worker has a lease until `leased_until`.

    `cursor`: id of the last letter that a batch has handled. `max_letter_id`: letters with higher ids are not changed.
    `asked_at`: when the person saw the letters.
    """

    id: int
    act: str
    filter: dict[str, Any]
    arguments: dict[str, Any]
    by: str
    reason: str
    asked_at: datetime
    max_letter_id: int
    cursor: int
    leased_until: datetime


_BEGIN: Final[LiteralString] = """
WITH bound AS (
    SELECT coalesce(max(id), 0) AS max_letter_id, least(%(opened)b::timestamptz, redrive_now()) AS asked_at
           FROM redrive_letter
), begun AS (
    INSERT INTO redrive_bulk_action (token, act, filter, arguments, by, reason, refusals, started_at, asked_at,
           max_letter_id, asked)
    SELECT %(token)b::uuid, %(act)b, %(filter)b::text::jsonb, %(arguments)b::text::jsonb, %(by)b, %(reason)b,
           '{{}}'::jsonb, redrive_now(), asked_at, max_letter_id, (
                SELECT count(*) FROM redrive_letter l
                 WHERE l.id <= bound.max_letter_id AND coalesce(l.finished_at <= bound.asked_at, true)
                   AND NOT EXISTS (SELECT FROM redrive_revision v WHERE v.letter_id = l.id AND v.at > bound.asked_at)
                   AND {where})
      FROM bound
    ON CONFLICT (token) DO NOTHING
    RETURNING id, asked, arguments
), noted AS (
    INSERT INTO redrive_audit_entry (act, operation_id, by, reason, at, before, after)
    SELECT %(noted)b, id, %(by)b, %(reason)b, redrive_now(), '{{}}'::jsonb,
           arguments - 'patch' || jsonb_build_object('filter', %(recorded)b::text::jsonb, 'letters', asked) FROM begun
)
SELECT asked FROM begun
"""

_DUE = """
UPDATE redrive_bulk_action
   SET leased_until = redrive_now() + make_interval(secs => %(lease)b::float8)
 WHERE id IN (SELECT id FROM redrive_bulk_action
               WHERE state = 'running' AND (leased_until IS NULL OR leased_until <= redrive_now())
               ORDER BY id LIMIT %(limit)b FOR UPDATE SKIP LOCKED)
RETURNING id
"""

_TAKE = """
UPDATE redrive_bulk_action
   SET leased_until = redrive_now() + make_interval(secs => %(lease)b::float8)
 WHERE id = %(id)b::bigint AND state = 'running'
   AND (%(held)b::timestamptz IS NULL OR leased_until = %(held)b::timestamptz)
RETURNING id, act, filter, arguments, by, reason, asked_at, max_letter_id, cursor, leased_until
"""

_NEXT: Final[LiteralString] = """
SELECT l.id FROM redrive_letter l
 WHERE l.id > %(cursor)b::bigint AND l.id <= %(max_letter_id)b::bigint AND coalesce(l.finished_at <= %(asked_at)b, true)
   AND NOT EXISTS (SELECT FROM redrive_revision v WHERE v.letter_id = l.id AND v.at > %(asked_at)b)
   AND (%(assigned)b::text IS NULL OR NOT EXISTS (
           SELECT FROM redrive_audit_entry r WHERE r.letter_id = l.id AND r.act = 'assigned' AND r.at > %(asked_at)b))
   AND {where}
 ORDER BY l.id
 LIMIT (SELECT least(%(limit)b, greatest(asked - done - letters_skipped, 0)) FROM redrive_bulk_action
         WHERE id = %(id)b::bigint)
"""

# When a bulk edit ends, its patch is removed: it may have values of messages.
_DONE = f"""
UPDATE redrive_bulk_action o
   SET arguments = CASE WHEN %(last)b::bool THEN o.arguments - '{PATCH}' ELSE o.arguments END,
       done = o.done + %(done)b::int, letters_skipped = o.letters_skipped + %(left)b::int, cursor = %(cursor)b::bigint,
       refusals = o.refusals || %(refusals)b::text::jsonb,
       state = CASE WHEN %(last)b::bool THEN 'done' ELSE o.state END,
       finished_at = CASE WHEN %(last)b::bool THEN redrive_now() END,
       leased_until = CASE WHEN %(last)b::bool THEN NULL ELSE o.leased_until END
 WHERE o.id = %(id)b::bigint
"""  # noqa: S608  # the inserted text is a constant

_GIVE_BACK = """
UPDATE redrive_bulk_action SET leased_until = NULL
 WHERE id = %(id)b::bigint AND state = 'running' AND leased_until = %(held)b
"""

_ABORT = f"""
WITH ended AS (
    UPDATE redrive_bulk_action
       SET state = 'aborted', finished_at = redrive_now(), leased_until = NULL, aborted_by = %(by)b, why = %(why)b,
           arguments = arguments - '{PATCH}'
     WHERE id = %(id)b::bigint AND state = 'running'
    RETURNING id, asked, done, letters_skipped
), noted AS (
    INSERT INTO redrive_audit_entry (act, operation_id, by, reason, at, before, after)
    SELECT 'aborted', id, %(by)b, %(why)b, redrive_now(), '{{}}'::jsonb,
           jsonb_build_object('letters', asked, 'done', done, 'letters_skipped', letters_skipped) FROM ended
)
SELECT id FROM ended
"""  # noqa: S608  # the inserted text is a constant


def create(  # noqa: PLR0913  # each by its name
    token: UUID, act: BulkActionKind, criteria: MessageFilter, arguments: Mapping[str, Any], *, by: str, reason: str,
    opened: datetime | None = None, approval: int | None = None, previewed: int | None = None,
) -> bool:  # fmt: skip
    """Store a bulk action, with an audit log entry; return False if a bulk action with this `token` exists.

    `token`: an id made by the caller, so that a repeated request does nothing. `opened`: when the person saw the
    letters; None: now. Letters that finished, were edited or joined the filter's failure group after this time are
    not changed. `approval`: id of the approval by a second person; None: there is none. `previewed`: how many letters
    the page showed to the person (10,001: more than 10,000). None: the person saw no number, so the bulk action is
    stored however many letters match.

    Raises:
        ApprovalNeeded: a second person must approve the action.
        SelectionChanged: the number of letters that match differs from `previewed`, or is 0. More letters match, for
            example, if failure groups were merged after the preview.
        InvalidFilter: the filter's text search would not find all letters that have the text.
    """
    filter_conditions.require_exhaustive(criteria)
    asked = filter_conditions.sql_parameters(criteria) | {
        "token": token, "act": act.value, "filter": json.dumps(stored_filters.stored_filter(criteria)),
        "noted": _NOTED[act].value, "recorded": json.dumps(criteria.recorded()),
        "arguments": json.dumps(stored_arguments(arguments)), "by": by, "reason": reason, "opened": opened,
    }  # fmt: skip

    def work() -> bool:
        if BulkAction.objects.filter(token=token).exists():
            return False
        _check_approval(act, criteria, arguments, by=by, approval=approval)
        where = filter_conditions.where_clause_at(criteria, "bound.asked_at")
        begun = rows.column(int, _BEGIN.format(where=where), asked)
        if begun and previewed is not None and not _is_as_previewed(begun[0], previewed):
            raise SelectionChanged(begun[0])
        return bool(begun)

    return rows.in_transaction(work)


def _is_as_previewed(matching: int, previewed: int) -> bool:
    return max(1, previewed) <= matching and (matching <= previewed or previewed > MAX_COUNT)


def _check_approval(
    act: BulkActionKind, criteria: MessageFilter, arguments: Mapping[str, Any], *, by: str, approval: int | None
) -> None:
    """Raise ApprovalNeeded if the bulk action needs a second person. Its batches are not checked again."""
    known = _ACTIONS[act]
    if known is None or (approval is None and not limits.is_any_limited()):
        return
    action = RequestedAction(*known, {**arguments, "filter": criteria.stored()})
    guard.check(action, {} if approval else frozen.count_by_dlq(criteria), by=by, approval=approval)


def stored_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a bulk action for its row. If encryption is on, the patch of an edit is encrypted."""
    if PATCH not in arguments:
        return dict(arguments)
    return {**arguments, PATCH: content.sealed_text(arguments[PATCH], Part.PATCH)}


def read_edit(held: LeasedAction) -> BulkEdit:
    """Return what a running bulk edit changes in each message.

    Raises:
        InvalidPatch: the patch is not valid any more, because a value in it was erased.
    """
    return BulkEdit.read({**held.arguments, PATCH: content.opened_text(held.arguments[PATCH], Part.PATCH)})


def lease_due(*, limit: int) -> list[int]:
    """Lease up to `limit` running bulk actions on which no worker has a lease; return their ids.

    The caller must send a Celery task for each of them.
    """
    return rows.column(int, _DUE, {"lease": LEASE_SECONDS, "limit": limit})


def take_over(operation: int) -> LeasedAction | None:
    """Lease a running bulk action, even if another worker has the lease; None: the bulk action has ended.

    The next batch of that other worker then does nothing.
    """
    return rows.first(LeasedAction, _TAKE, {"id": operation, "held": None, "lease": LEASE_SECONDS})


def renew_lease(held: LeasedAction) -> LeasedAction | None:
    """Lock a bulk action for one batch, and renew its lease. None: the action has ended, or the lease was lost."""
    return rows.first(LeasedAction, _TAKE, {"id": held.id, "held": held.leased_until, "lease": LEASE_SECONDS})


def next_letters(held: LeasedAction) -> list[int]:
    """Return the ids of the bulk action's next letters, in ascending order, at most 500 (`BATCH_LETTERS`).

    The bulk action changes at most as many letters as matched when the person confirmed, because people approve that
    number. If the filter selects by assignee, letters that were assigned after the person saw them are left out. If it
    selects by failure group, letters that joined the group after that time are left out.
    """
    criteria = stored_filters.read_filter(held.filter)
    asked = filter_conditions.sql_parameters(criteria) | {
        "cursor": held.cursor, "max_letter_id": held.max_letter_id, "asked_at": held.asked_at, "limit": BATCH_LETTERS,
        "id": held.id,
    }  # fmt: skip
    return rows.column(int, _NEXT.format(where=filter_conditions.where_clause_at(criteria, "%(asked_at)b")), asked)


def record_batch(  # noqa: PLR0913  # each by its name
    held: LeasedAction, found: Sequence[int], *, done: int, refused: Mapping[int, str], kept: int, last: bool
) -> None:
    """Record the result of a batch. `last`: whether this was the last batch, so that the bulk action ends.

    `found`: ids of the batch's letters. `done`: how many of them were changed. `refused`: why the other letters were
    skipped, by letter id. `kept`: how many of such reasons earlier batches stored; at most 20 are stored.
    """
    some = dict(list(refused.items())[: max(0, MAX_SKIP_REASONS - kept)])
    rows.execute(_DONE, {
        "id": held.id, "done": done, "left": len(refused), "cursor": found[-1] if found else held.max_letter_id,
        "refusals": json.dumps(some), "last": last,
    })  # fmt: skip


def release_lease(held: LeasedAction) -> None:
    """Release the lease of a bulk action that has not ended, so that any worker may continue it at once."""
    rows.execute(_GIVE_BACK, {"id": held.id, "held": held.leased_until})


def abort(operation: int, *, by: str, why: str) -> bool:
    """Abort a bulk action after its current batch, with an audit log entry; return whether the action was running."""
    return bool(rows.execute(_ABORT, {"id": operation, "by": by, "why": why}))
