"""Decide what became of each letter (its fate): delivered, parked, discarded, duplicate, waiting or lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from redrive_service.sandbox.judge.case import ServiceRecords
from redrive_service.sandbox.judge.evidence import Event, Evidence, Message, Send
from redrive_service.sandbox.judge.findings import Fate, Finding, Offence


def fates(evidence: Evidence, books: ServiceRecords) -> dict[str, Fate]:
    """Return the fate of each letter, by its message id in the dlq."""
    return {name: fate for event in evidence.events.values() for name, fate in _of(event, evidence, books).items()}


def lost(evidence: Evidence, decided: Mapping[str, Fate]) -> Iterator[Finding]:
    """Find the lost letters: they are in no queue and not in the service's records."""
    for event in evidence.events.values():
        for letter in event.letters:
            if decided[letter.message_id] is Fate.LOST:
                sent = len(event.sends)
                sentence = f"Letter {letter.message_id} (event {event.name}) is nowhere; its event was sent {sent} x."
                yield Finding(Offence.LOST, event.name, sentence)


def _of(event: Event, evidence: Evidence, books: ServiceRecords) -> dict[str, Fate]:
    """Return the fates of one event's letters.

    The logs do not show which letter of the event has which redrive id. So the judge counts redrive ids: for each
    delivered redrive id, one letter counts as delivered. The same holds for redrive ids that are on their way.
    """
    delivered = {send.letter for send in event.arrivals if _is_delivered(send, evidence)}
    travelling = {send.letter for send in event.arrivals if _is_there(send.message)} - delivered
    decided = {letter.message_id: fate for letter in event.letters if (fate := _booked(letter, books, bool(delivered)))}
    rest = [letter for letter in event.letters if letter.message_id not in decided]
    rest.sort(key=_is_there)  # letters still in a queue come last, because they are not lost
    supply = Counter({Fate.DELIVERED: len(delivered), Fate.WAITING: len(travelling)})
    for letter in rest:
        decided[letter.message_id] = _next(letter, supply, books)
    return decided


def _next(letter: Message, supply: Counter[Fate], books: ServiceRecords) -> Fate:
    for fate in (Fate.DELIVERED, Fate.WAITING):
        if supply[fate] > 0:
            supply[fate] -= 1
            return fate
    if _is_there(letter) or letter.message_id in books.open:
        return Fate.WAITING
    return Fate.LOST


def _booked(letter: Message, books: ServiceRecords, event_delivered: bool) -> Fate | None:  # noqa: FBT001  # one flag, private function
    """Return the letter's fate according to the service's records; None: the records do not have the letter.

    A letter that was closed as a duplicate is lost if no equal letter was delivered.
    """
    if letter.message_id in books.parked:
        return Fate.PARKED
    if letter.message_id in books.discarded:
        return Fate.DISCARDED
    if letter.message_id in books.duplicates:
        return Fate.DUPLICATE if event_delivered else Fate.LOST
    return None


def _is_delivered(send: Send, evidence: Evidence) -> bool:
    if evidence.processings is None:
        return send.message is not None and send.message.buried is None
    return evidence.processed(send.message)


def _is_there(message: Message | None) -> bool:
    return message is not None and message.deleted is None
