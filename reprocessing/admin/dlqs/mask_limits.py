"""Refuse changes of a DLQ's settings that would show masked values to people who may not reveal them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from reprocessing.models import DeadLetterQueue
from reprocessing.store.payloads import viewed_content

#: Settings that would show a value of a message, for example as its ordering key, or that decide what is masked.
_SHOWING: Final = (
    "masked_fields", "search_fields", "ordering_key", "sequence", "idempotency_key", "message_type", "tenant",
)  # fmt: skip
REFUSAL: Final = (
    "Fields of this DLQ are masked. This setting can show their values, so it needs the permission to reveal them."
)


def refused_fields(row: DeadLetterQueue | None, changed: Collection[str], *, reveals: bool) -> list[str]:
    """Return the names of the changed form fields that this person may not change; empty: the change is allowed.

    Everything is allowed if the person may reveal masked values (`reveals`), or the DLQ is new or masks no fields.
    """
    if reveals or row is None or not viewed_content.masks_fields(row.pk):
        return []
    return [name for name in _SHOWING if name in changed]
