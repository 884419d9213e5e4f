"""Read the body of a message for the API. Masked fields stay masked, and the audit log records each view."""

from __future__ import annotations

from typing import Final

from reprocessing.models import Letter
from reprocessing.store.payloads import viewed_content
from reprocessing.store.payloads.viewed_content import CAPTURED, TO_SEND, ViewedContent

_WHY: Final = "Read the body over the HTTP API."


def read_body(letter: Letter, *, captured: bool, by: str) -> ViewedContent | None:
    """Return the body and attributes with masked values, as they would be sent or, if `captured`, as captured.

    None: the body was deleted. The audit log records that `by` viewed it.

    Raises:
        PayloadUnreadable: the content is encrypted, and its key is missing or was destroyed.
    """
    return viewed_content.view_content(letter, CAPTURED if captured else TO_SEND, by=by, why=_WHY)
