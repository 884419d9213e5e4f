"""Make letters from received messages that were not captured before."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta

from reprocessing.domain.lifecycle import ParkedReason
from reprocessing.domain.message.envelope import ReceivedMessage, pack_attributes
from reprocessing.domain.message.identity import LetterFacts, body_hash
from reprocessing.domain.message.redrive_attributes import attributes_size, earlier_attempts
from reprocessing.domain.ordering.placement import StoredPlace
from reprocessing.models import DeadLetterQueue, Source
from reprocessing.pipeline.capture import find_source
from reprocessing.pipeline.runs import place_letters
from reprocessing.store.capture.received_copies import NewLetter

_POSSIBLE_RETURN = StoredPlace(ParkedReason.POSSIBLE_RETURN)


class NewLetters:
    """Makes the letters of one capture, with the settings that the DLQ had when the capture began."""

    def __init__(self, dlq: DeadLetterQueue) -> None:
        self._dlq = dlq
        self._sources, self._keys = find_source.Sources(dlq), place_letters.policy_of(dlq)

    def new(self, copy: ReceivedMessage, digest: bytes, doubtful: Collection[bytes], *, now: datetime) -> NewLetter:
        """Return the letter for a received message, with its place in a lane, or a reason to park it.

        `digest`: the stored digest of the body. `doubtful`: digests of the bodies of letters that may have come back; a
        letter with one of these bodies is parked.
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
            else self._place(copy, source, size, now),
        )  # fmt: skip

    def _place(self, copy: ReceivedMessage, source: Source | None, size: int, now: datetime) -> StoredPlace | None:
        if source is None:
            return None
        facts = LetterFacts(copy.message_id, copy.body, copy.attributes, copy.system)
        return place_letters.place(self._keys, facts, place_letters.limits_of(source.target), size=size, now=now)
