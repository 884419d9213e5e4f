"""Take the bodies of letters whose stored bodies were deleted from the copies that came back to the DLQ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date

from reprocessing.domain.message.envelope import ReceivedMessage, pack_attributes
from reprocessing.domain.payloads.sealing import Part
from reprocessing.store.capture import restored_bodies
from reprocessing.store.capture.received_copies import ReturnedCopy
from reprocessing.store.capture.restored_bodies import LetterWithoutBody, ReturnedBody
from reprocessing.store.capture.returns_without_attempt import UnknownReturn
from reprocessing.store.payloads import content
from reprocessing.store.payloads.content import Sealer


def returned_bodies(
    returned: Sequence[ReturnedCopy | UnknownReturn], copies: Mapping[str, ReceivedMessage], *, day: date
) -> list[ReturnedBody]:
    """Return the bodies for those returned letters whose stored body was deleted, encrypted if payloads are encrypted.

    `copies`: the received copies, by message id. `day`: the day whose data key is used. Call it outside a
    transaction, because AWS KMS may have to unwrap a key.
    """
    found = [(letter.letter_id, copies[letter.message_id]) for letter in returned if letter.lacks_body]
    letters = restored_bodies.letters_without_body([letter_id for letter_id, _ in found])
    sealers = {dlq: content.sealer_of(dlq, day) for dlq in {letter.dlq_id for letter in letters.values()}}
    digests = content.digests(copy.body for _, copy in found)
    return [
        _sealed(letters[letter_id], copy, digest, sealers[letters[letter_id].dlq_id])
        for (letter_id, copy), digest in zip(found, digests, strict=True)
        if letter_id in letters
    ]


def _sealed(letter: LetterWithoutBody, copy: ReceivedMessage, digest: bytes, sealer: Sealer) -> ReturnedBody:
    of, packed = letter.message_id, pack_attributes(copy.attributes)
    return ReturnedBody(
        letter_id=letter.id, body=sealer.bytes(copy.body, Part.BODY, of=of),
        attributes=sealer.bytes(packed, Part.ATTRIBUTES, of=of), system=sealer.system(copy.system, of=of),
        body_hash=digest, key_id=sealer.key_id,
    )  # fmt: skip
