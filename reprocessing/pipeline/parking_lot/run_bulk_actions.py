"""Run bulk actions: one action on every letter that a filter matches, in batches.

One transaction changes the letters of a batch and records the progress, so a killed worker repeats or skips nothing.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Final, assert_never

from reprocessing import conf
from reprocessing.domain.errors import InvalidPatch
from reprocessing.domain.parking_lot.bulk_edit import BulkEdit
from reprocessing.models import BulkAction
from reprocessing.models.parking_lot import BulkActionKind
from reprocessing.pipeline.parking_lot import act_on_parked, edit_messages
from reprocessing.pipeline.parking_lot.act_on_parked import Reviewed
from reprocessing.pipeline.parking_lot.edit_messages import PreparedBatch
from reprocessing.store import rows
from reprocessing.store.parking_lot import bulk_actions
from reprocessing.store.parking_lot.bulk_actions import LeasedAction

#: The name in the audit log if a bulk action ends without a person.
_SERVICE: Final = "the service"


def run_bulk_action(operation_id: int, *, seconds: float) -> bool:
    """Continue a bulk action for about `seconds`. Return True if letters are left, so that a new call is needed."""
    held = bulk_actions.take_over(operation_id)
    ends = time.monotonic() + seconds
    while held is not None:
        edits = _prepared(held)
        held = rows.in_transaction(partial(_batch, held, edits))
        if held is not None and time.monotonic() >= ends:
            bulk_actions.release_lease(held)
            return True
    return False


@dataclass(frozen=True, slots=True)
class _Edits:
    """The next batch of a bulk edit. `last`: True: no letters are left after this batch."""

    wanted: BulkEdit
    batch: PreparedBatch
    last: bool


def _prepared(held: LeasedAction) -> _Edits | None:
    """Return the next batch of a bulk edit, prepared outside a transaction.

    None: the action is another one than an edit, or it was aborted here: an erasure replaced a value in the patch,
    which made the patch invalid.
    """
    if held.act != BulkActionKind.EDIT:
        return None
    try:
        wanted = bulk_actions.read_edit(held)
    except InvalidPatch:
        bulk_actions.abort(held.id, by=_SERVICE, why="a value in its patch was erased")
        return None
    found = bulk_actions.next_letters(held)
    batch = edit_messages.prepare(found, wanted, conf.current().marks, operation=held.id)
    return _Edits(wanted, batch, last=len(found) < bulk_actions.BATCH_LETTERS and len(batch.letters) == len(found))


def _batch(held: LeasedAction, edits: _Edits | None) -> LeasedAction | None:
    """Execute one batch of a bulk action, and return the lease for the next batch.

    None: the bulk action has ended, or another worker continues it.
    """
    mine = bulk_actions.renew_lease(held)
    if mine is None:
        return None
    if edits is not None:
        found, last = list(edits.batch.letters), edits.last
        reviewed = edit_messages.apply(
            edits.batch, edits.wanted, by=mine.by, reason=mine.reason, operation=mine.id, seen_at=mine.asked_at
        )  # fmt: skip
    else:
        found = bulk_actions.next_letters(mine)
        last = len(found) < bulk_actions.BATCH_LETTERS
        reviewed = _act(mine, found) if found else Reviewed((), {})
    kept = len(BulkAction.objects.values_list("refusals", flat=True).get(pk=mine.id))
    bulk_actions.record_batch(
        mine, found, done=len(reviewed.done), refused=reviewed.refused, kept=kept, last=last
    )  # fmt: skip
    return bulk_actions.take_over(mine.id)


def _act(held: LeasedAction, letters: list[int]) -> Reviewed:
    said: dict[str, Any] = {"by": held.by, "reason": held.reason, "operation": held.id}
    match BulkActionKind(held.act):
        case BulkActionKind.RELEASE:
            due = held.arguments.get("due")
            when = datetime.fromisoformat(due) if due else None
            return act_on_parked.release(letters, due=when, target=held.arguments.get("target"), **said)
        case BulkActionKind.DISCARD:
            return act_on_parked.discard(letters, **said)
        case BulkActionKind.RESTORE:
            return act_on_parked.restore(letters, **said)
        case BulkActionKind.ASSIGN:
            return act_on_parked.assign(letters, to=held.arguments["to"], seen_at=held.asked_at, **said)
        case BulkActionKind.NOTE:
            return act_on_parked.note(letters, **said)
        case BulkActionKind.EDIT:
            raise AssertionError("edits are prepared before the transaction")
        case _ as never:
            assert_never(never)
