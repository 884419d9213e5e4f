"""Store message filters as JSON, in bulk actions, requests for approval and saved filters.

If encryption is on, the conditions that may have values of messages are encrypted (sealed) with the installation's key.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reprocessing.domain.parking_lot.message_filter import SECRETS, MessageFilter
from reprocessing.domain.payloads import sealing
from reprocessing.domain.payloads.sealing import Part
from reprocessing.store.payloads import content


def stored_filter(criteria: MessageFilter) -> dict[str, Any]:
    """Return a filter as a JSON object to store."""
    return sealed(criteria.stored())


def read_filter(stored: Mapping[str, Any]) -> MessageFilter:
    """Return the filter of a JSON object that `stored_filter` returned. Raises PayloadUnreadable."""
    return MessageFilter.read(opened(stored))


def is_sealed(stored: Mapping[str, Any]) -> bool:
    """Return whether a stored filter has an encrypted condition, so that a key is needed to read the filter."""
    return any(sealing.from_text(stored[name]) is not None for name in SECRETS if name in stored)


def sealed(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return a filter's JSON object (`MessageFilter.stored`). Conditions that may have message data are encrypted."""
    return {**stored, **{name: content.sealed_text(stored[name], Part.FILTER) for name in SECRETS if name in stored}}


def opened(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return a JSON object that `sealed` returned, with its conditions decrypted. Raises PayloadUnreadable."""
    return {**stored, **{name: content.opened_text(stored[name], Part.FILTER) for name in SECRETS if name in stored}}
