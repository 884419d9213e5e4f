"""Run bulk actions: one action on every letter that a filter matches, in batches.

One transaction changes the letters of a batch and records the progress, so a killed worker repeats or skips nothing.
"""

from __future__ import annotations

import time
from datetime import datetime
from functools import partial
from typing import Any, assert_never

from reprocessing.models import BulkAction
from reprocessing.models.parking_lot import BulkActionKind
from reprocessing.pipeline.parking_lot import act_on_parked
from reprocessing.pipeline.parking_lot.act_on_parked import Reviewed
from reprocessing.store import rows
from reprocessing.store.parking_lot import bulk_actions
from reprocessing.store.parking_lot.bulk_actions import LeasedAction


def run_bulk_action(operation_id: int, *, seconds: float) -> bool:
    """Continue a bulk action for about `seconds`; return True if letters are left: then call this again."""
    held = bulk_actions.take_over(operation_id)
    ends = time.monotonic() + seconds
    while held is not None:
        held = rows.in_transaction(partial(_batch, held))
        if held is not None and time.monotonic() >= ends:
            bulk_actions.release_lease(held)
            return True
    return False


def _batch(held: LeasedAction) -> LeasedAction | None:
    """Do the next batch of a bulk action; return the lease for the batch after it.

    None: the bulk action has ended, or another worker took over.
    """
    mine = bulk_actions.renew_lease(held)
    if mine is None:
        return None
    found = bulk_actions.next_letters(mine)
    reviewed = _act(mine, found) if found else Reviewed((), {})
    kept = len(BulkAction.objects.values_list("refusals", flat=True).get(pk=mine.id))
    bulk_actions.record_batch(mine, found, done=len(reviewed.done), refused=reviewed.refused, kept=kept)
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
        case _ as never:
            assert_never(never)
