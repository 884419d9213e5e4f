"""Show what an edit of many messages would do, and what it did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from reprocessing.domain.parking_lot.bulk_edit import BulkEdit, operations_of
from reprocessing.models import BulkAction, BulkActionState
from reprocessing.pipeline.parking_lot.preview_edit import EditPreview


def preview_lines(found: EditPreview, wanted: BulkEdit, ids: Mapping[int, str]) -> Iterable[str]:
    """Yield lines about a dry run: the operations, how many messages they fit, and why they do not fit others.

    `ids`: the message id of each letter.
    """
    yield from (f"  {operation}" for operation in operations_of(wanted.patch))
    after = "are released" if wanted.release else "stay parked"
    yield f"The patch fits {found.fits:,} of {found.checked:,}. After it, they {after}."
    for why, n, letter in found.unfit:
        yield f"  {n:,} not changed, since {why}: {ids.get(letter, letter)}{' …' if n > 1 else ''}"
    for sentence, n in found.touched:
        yield f"  {n:,}: {sentence}{'' if wanted.changes_keys else ' They are skipped. To edit them: --changes-keys'}"


def result_lines(row: BulkAction) -> Iterable[str]:
    """Yield lines about an ended bulk edit: how many messages were edited, and why others were not."""
    yield f"{row.done:,} of {row.asked:,} {'is' if row.asked == 1 else 'are'} edited."
    if row.state == BulkActionState.ABORTED:
        yield f"{row.aborted_by} aborted it: {row.why}"
    told = Counter(row.refusals.values())
    yield from (f"{n:,} skipped, since {why}" for why, n in told.most_common())
    if row.letters_skipped > sum(told.values()):
        more = row.letters_skipped - sum(told.values())
        yield f"{more:,} more were skipped; only the first reasons are kept."
    if row.state == BulkActionState.DONE and (gone := row.asked - row.done - row.letters_skipped) > 0:
        yield f"{gone:,} changed after the dry run, and were left as they are."


def in_json(found: EditPreview | None, row: BulkAction | None, wanted: BulkEdit) -> dict[str, Any]:
    """Return a dry run, or an ended bulk edit, as a JSON object."""
    told: dict[str, Any] = {"dry_run": row is None, "operations": operations_of(wanted.patch)}
    if found is not None:
        told |= {
            "checked": found.checked, "fits": found.fits, "unfit": {why: n for why, n, _ in found.unfit},
            "changes_keys": dict(found.touched),
        }  # fmt: skip
    if row is not None:
        told |= {
            "bulk_action": row.pk, "state": row.state, "messages": row.asked, "edited": row.done,
            "skipped": row.letters_skipped, "skipped_because": dict(Counter(row.refusals.values())),
        }  # fmt: skip
    return told
