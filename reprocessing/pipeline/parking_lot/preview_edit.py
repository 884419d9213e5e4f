"""Show what an edit of many messages would do: which messages its patch fits, why it does not fit others, and examples.

Messages are checked in chunks, until all are checked or the time is over. The other messages are checked while the
edit runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from reprocessing.domain.message.redrive_attributes import MarkNames
from reprocessing.domain.parking_lot.bulk_edit import BulkEdit
from reprocessing.domain.parking_lot.patched_body import Unfit
from reprocessing.pipeline.parking_lot.edit_messages import Patched, Patcher


@dataclass(frozen=True, slots=True)
class EditPreview:
    """What an edit would do to the messages that were checked.

    Attributes:
        checked: number of checked messages.
        fits: how many of the checked messages the patch can change.
        unfit: reasons why the patch cannot change other messages, each with their number and the letter id of one.
        touched: sentences about keys that the edit changes, each with the number of messages.
        samples: the first edits, as examples.
    """

    checked: int
    fits: int
    unfit: tuple[tuple[str, int, int], ...]
    touched: tuple[tuple[str, int], ...]
    samples: tuple[Patched, ...] = field(repr=False)


def preview(  # noqa: PLR0913  # arguments are passed by name
    letters: Sequence[int], wanted: BulkEdit, names: MarkNames, *, seconds: float, samples: int,
    progress: Callable[[int], None] = lambda _: None,
) -> EditPreview:  # fmt: skip
    """Check which of these letters the patch can change, in their order, for `seconds` at most.

    `samples`: how many edits to return as examples. `progress`: called with the number of checked letters. `names`: the
    names of the redrive attributes. Call this function outside a transaction, because AWS KMS may be called.

    Raises:
        PayloadUnreadable: a key of encrypted payloads is not available now.
    """
    unfit, first, touched = Counter[str](), dict[str, int](), Counter[str]()
    found: list[Patched] = []
    checked = fits = 0
    for letter, one in Patcher(wanted, names).patched(letters, seconds=seconds):
        checked += 1
        if isinstance(one, Unfit):
            unfit[one.why] += 1
            first.setdefault(one.why, letter)
        else:
            fits += 1
            touched.update(one.touched)
            if len(found) < samples:
                found.append(one)
        progress(checked)
    reasons = tuple((why, n, first[why]) for why, n in unfit.most_common())
    return EditPreview(checked, fits, reasons, tuple(touched.most_common()), tuple(found))
