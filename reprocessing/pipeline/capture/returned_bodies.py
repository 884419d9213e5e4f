"""Get the bodies that were deleted from the returned copies of their messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reprocessing.domain.message.envelope import ReceivedMessage, pack_attributes
from reprocessing.domain.message.identity import body_hash
from reprocessing.store.capture.received_copies import ReturnedCopy
from reprocessing.store.capture.restored_bodies import ReturnedBody
from reprocessing.store.capture.returns_without_attempt import UnknownReturn


def returned_bodies(
    returned: Sequence[ReturnedCopy | UnknownReturn], copies: Mapping[str, ReceivedMessage]
) -> list[ReturnedBody]:
    """Return the bytes of the copies whose letters lack a body. `copies`: the received copies by message id."""
    found = [(letter.letter_id, copies[letter.message_id]) for letter in returned if letter.lacks_body]
    return [
        ReturnedBody(
            letter_id=letter_id, body=copy.body, attributes=pack_attributes(copy.attributes),
            system=dict(copy.system), body_hash=body_hash(copy.body),
        )
        for letter_id, copy in found
    ]  # fmt: skip
