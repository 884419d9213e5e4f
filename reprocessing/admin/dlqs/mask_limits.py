"""Limits of the DLQ form for people who may not reveal masked values: no setting makes the values visible."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from reprocessing.models import DeadLetterQueue
from reprocessing.store.payloads import viewed_content

#: Settings that show values of messages as keys, or to rules, or that unmask them.
_SHOWING: Final = ("masked_fields", "ordering_key", "sequence", "idempotency_key", "message_type", "tenant")
REFUSAL: Final = (
    "Fields of this DLQ are masked. This setting can show their values, so it takes the permission to reveal them."
)


def refused_fields(row: DeadLetterQueue | None, changed: Collection[str], *, reveals: bool) -> list[str]:
    """Return the changed fields that this person may not change."""
    if reveals or row is None or not viewed_content.masks_fields(row.pk):
        return []
    return [name for name in _SHOWING if name in changed]
