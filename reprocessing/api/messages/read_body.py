"""Read the body of a message for a token: masked, and recorded in the audit log under the token's name.

Every body that the API answers is read here.
"""

from __future__ import annotations

from typing import Final

from reprocessing.models import Letter
from reprocessing.store.payloads import viewed_content
from reprocessing.store.payloads.viewed_content import CAPTURED, TO_SEND, ViewedContent

_WHY: Final = "Read the body over the HTTP API."


def read_body(letter: Letter, *, captured: bool, by: str) -> ViewedContent | None:
    """Return the body that would be sent, or the captured one, with masked values; None: it was deleted.

    Raises:
        PayloadUnreadable: the content is encrypted, and its key is missing or was destroyed.
    """
    return viewed_content.view_content(letter, CAPTURED if captured else TO_SEND, by=by, why=_WHY)
