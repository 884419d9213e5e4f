"""Restore deleted bodies of letters from the messages that came back to the DLQ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date

from reprocessing.domain.message.envelope import ReceivedMessage, pack_attributes
from reprocessing.domain.message.identity import LetterFacts
from reprocessing.domain.payloads.sealing import Part
from reprocessing.domain.search.search_fields import values_of
from reprocessing.models import DeadLetterQueue
from reprocessing.store.capture import restored_bodies
from reprocessing.store.capture.received_copies import ReturnedCopy
from reprocessing.store.capture.restored_bodies import LetterWithoutBody, ReturnedBody
from reprocessing.store.capture.returns_without_attempt import UnknownReturn
from reprocessing.store.payloads import content
from reprocessing.store.payloads.content import Sealer
from reprocessing.store.search import search_entries, search_settings
from reprocessing.store.search.search_entries import Entry
from reprocessing.store.search.search_settings import SearchSettings


def returned_bodies(
    returned: Sequence[ReturnedCopy | UnknownReturn], copies: Mapping[str, ReceivedMessage], *, day: date
) -> list[ReturnedBody]:
    """Return the bodies of returned letters whose stored bodies were deleted. They are encrypted, if payloads are.

    `copies`: the received messages, by message id. `day`: the day whose data key is used. Call this function outside a
    transaction, because AWS KMS may have to decrypt the data key.
    """
    found = [(letter.letter_id, copies[letter.message_id]) for letter in returned if letter.lacks_body]
    letters = restored_bodies.letters_without_body([letter_id for letter_id, _ in found])
    sealers = {dlq: content.sealer_of(dlq, day) for dlq in {letter.dlq_id for letter in letters.values()}}
    digests = content.digests(copy.body for _, copy in found)
    search = {dlq: search_settings.of_dlq(DeadLetterQueue.objects.get(pk=dlq)) for dlq in sealers}
    return [
        _sealed(letters[letter_id], copy, digest, sealers[letters[letter_id].dlq_id], search[letters[letter_id].dlq_id])
        for (letter_id, copy), digest in zip(found, digests, strict=True)
        if letter_id in letters
    ]


def _sealed(
    letter: LetterWithoutBody, copy: ReceivedMessage, digest: bytes, sealer: Sealer, search: SearchSettings
) -> ReturnedBody:
    of, packed = letter.message_id, pack_attributes(copy.attributes)
    return ReturnedBody(
        letter_id=letter.id, body=sealer.bytes(copy.body, Part.BODY, of=of),
        attributes=sealer.bytes(packed, Part.ATTRIBUTES, of=of), system=sealer.system(copy.system, of=of),
        body_hash=digest, key_id=sealer.key_id, entries=tuple(_entries(copy, search)),
    )  # fmt: skip


def _entries(copy: ReceivedMessage, search: SearchSettings) -> list[Entry]:
    if not search.fields:
        return []
    facts = LetterFacts(copy.message_id, copy.body, copy.attributes, copy.system)
    hasher = search_entries.hasher_of(search.id)
    return search_entries.stored_entries(values_of(search.fields, facts, search.rules), hasher)
