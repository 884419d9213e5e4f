"""Read the body of a message for the API. Masked fields stay masked, and the audit log records each view."""

from __future__ import annotations

from typing import Final

from reprocessing.models import Letter
from reprocessing.store.payloads import viewed_content
from reprocessing.store.payloads.viewed_content import CAPTURED, TO_SEND, ViewedContent

_WHY: Final = "Read the body over the HTTP API."


def read_body(letter: Letter, *, captured: bool, by: str) -> ViewedContent | None:
    """Return the body and attributes of a message, with masked values; None: the body was deleted.

    `captured`: return them as they were captured, else as they would be sent. `by`: who reads them, for the audit log.

    Raises:
        PayloadUnreadable: the content is encrypted, and its key is missing or was destroyed.
    """
    return viewed_content.view_content(letter, CAPTURED if captured else TO_SEND, by=by, why=_WHY)
