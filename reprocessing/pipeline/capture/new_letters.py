"""Make letters from received messages that were not captured before."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import date, datetime, timedelta

from reprocessing.domain.lifecycle import ParkedReason
from reprocessing.domain.message.envelope import ReceivedMessage, pack_attributes
from reprocessing.domain.message.identity import LetterFacts, body_hash
from reprocessing.domain.message.redrive_attributes import attributes_size, earlier_attempts
from reprocessing.domain.ordering.placement import StoredPlace
from reprocessing.domain.search.search_fields import values_of
from reprocessing.models import DeadLetterQueue, Source
from reprocessing.pipeline.capture import find_source
from reprocessing.pipeline.runs import place_letters
from reprocessing.store.capture import received_copies
from reprocessing.store.capture.received_copies import NewLetter
from reprocessing.store.payloads import content, payload_keys
from reprocessing.store.search import search_entries, search_settings
from reprocessing.store.search.search_entries import EntriesOfMessages, stored_entries

_POSSIBLE_RETURN = StoredPlace(ParkedReason.POSSIBLE_RETURN)


def check_keys(dlq: DeadLetterQueue, day: date) -> None:
    """If payloads are encrypted, check that new letters of a DLQ can be encrypted on this day, and create missing keys.

    This check comes before a capture, because a capture that fails later leaves its messages invisible in the DLQ.

    Raises:
        PayloadKeyUnavailable: a key is missing or does not fit, AWS KMS does not answer, or this process has no key.
    """
    for place in (payload_keys.INSTALLATION, (dlq.pk, day), *([(dlq.pk, None)] if dlq.search_fields else [])):
        payload_keys.current_key(place)


class NewLetters:
    """Makes the letters of one capture, with the settings that the DLQ had when the capture began.

    Only the settings for searches are read again when they change.
    """

    def __init__(self, dlq: DeadLetterQueue) -> None:
        self._dlq, self._search = dlq, search_settings.of_dlq(dlq)
        self._sources, self._keys = find_source.Sources(dlq), place_letters.policy_of(dlq)

    def new(
        self, copy: ReceivedMessage, facts: LetterFacts, digest: bytes, doubtful: Collection[bytes], *, now: datetime
    ) -> NewLetter:
        """Return the letter for a received message, with its place in a lane, or a reason to park it.

        `facts`: the message, with its body parsed once. `digest`: the stored digest of the body. `doubtful`: body
        digests of sent letters. A message with one of these bodies may be such a letter that came back, so it is
        parked.
        """
        source = self._sources.of(copy.body, copy.attributes, copy.system)
        size = len(copy.body) + attributes_size(copy.attributes)
        return NewLetter(
            message_id=copy.message_id, handle=copy.handle, body=copy.body, attributes=pack_attributes(copy.attributes),
            size=size, system=dict(copy.system),
            source=source.pk if source else None, target=source.target_id if source else None,
            attempts=earlier_attempts(copy.attributes), body_hash=digest, first_sent_at=copy.sent_at,
            expires_at=copy.sent_at + timedelta(seconds=self._dlq.retention),
            place=_POSSIBLE_RETURN
            if doubtful and not {digest, body_hash(copy.body)}.isdisjoint(doubtful)
            else self._place(facts, source, size, now),
        )  # fmt: skip

    def store(
        self, new: Sequence[NewLetter], facts: Sequence[LetterFacts], *, until: datetime, at_capture: bool, day: date
    ) -> set[str]:
        """Store new letters, with the values of search fields in `facts`; return the ids of the messages that were new.

        Nothing is stored if a data key was destroyed, or if the DLQ's settings for searches have changed. Then read the
        keys and settings again, and retry once. `day`: the day whose data key is used. Call this function outside a
        transaction.
        """
        for _ in range(2):
            written = received_copies.admit(
                self._dlq.pk, new, until=until, at_capture=at_capture, places_version=self._dlq.places_version,
                sealer=content.sealer_of(self._dlq.pk, day), searched=self._entries(facts),
            )  # fmt: skip
            if written or not new:
                return written
            payload_keys.forget_unwrapped()
            self._search = search_settings.of_dlq(DeadLetterQueue.objects.get(pk=self._dlq.pk))
        return set()

    def _entries(self, facts: Iterable[LetterFacts]) -> EntriesOfMessages:
        found = EntriesOfMessages(self._search.version)
        if not self._search.fields:
            return found
        hasher = search_entries.hasher_of(self._dlq.pk)
        for message in facts:
            entries = stored_entries(values_of(self._search.fields, message, self._search.rules), hasher)
            found.message_ids.extend([message.message_id] * len(entries))
            found.entries.extend(entries)
        return found

    def _place(self, facts: LetterFacts, source: Source | None, size: int, now: datetime) -> StoredPlace | None:
        if source is None:
            return None
        return place_letters.place(self._keys, facts, place_letters.limits_of(source.target), size=size, now=now)
