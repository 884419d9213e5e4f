"""Decide what became of each dead message (its fate): delivered, parked, discarded, duplicate, waiting or lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from redrive_service.sandbox.judge.case import ServiceRecords
from redrive_service.sandbox.judge.evidence import Event, Evidence, Message, Send
from redrive_service.sandbox.judge.findings import Fate, Finding, Offence


def fates(evidence: Evidence, records: ServiceRecords) -> dict[str, Fate]:
    """Return what became of each dead message (its fate), by its message id in the DLQ."""
    return {
        name: fate
        for event in evidence.events.values()
        for name, fate in _fates_of_event(event, evidence, records).items()
    }


def lost(evidence: Evidence, decided: Mapping[str, Fate]) -> Iterator[Finding]:
    """Find the lost messages: they are in no queue, and not in the service's records. `decided` is `fates`' result."""
    for event in evidence.events.values():
        for letter in event.letters:
            if decided[letter.message_id] is Fate.LOST:
                sent = len(event.sends)
                where = "in no queue and no record"
                sentence = f"Letter {letter.message_id} (event {event.name}) is {where}; its event was sent {sent} x."
                yield Finding(Offence.LOST, event.name, sentence)


def _fates_of_event(event: Event, evidence: Evidence, records: ServiceRecords) -> dict[str, Fate]:
    """Return what became of each dead message (letter) of one event, by message id.

    The logs do not show which letter of the event has which redrive id. So the judge counts redrive ids: for each
    redrive id that was delivered, one letter counts as delivered. For each redrive id that is still in a queue, one
    letter counts as waiting.
    """
    delivered = {send.letter for send in event.arrivals if _is_delivered(send, evidence)}
    on_their_way = {send.letter for send in event.arrivals if _is_in_a_queue(send.message)} - delivered
    decided = {
        letter.message_id: fate
        for letter in event.letters
        if (fate := _recorded_fate(letter, records, bool(delivered)))
    }
    undecided = [letter for letter in event.letters if letter.message_id not in decided]
    undecided.sort(key=_is_in_a_queue)  # letters still in a queue come last, because they are not lost
    supply = Counter({Fate.DELIVERED: len(delivered), Fate.WAITING: len(on_their_way)})
    for letter in undecided:
        decided[letter.message_id] = _next(letter, supply, records)
    return decided


def _next(letter: Message, supply: Counter[Fate], records: ServiceRecords) -> Fate:
    for fate in (Fate.DELIVERED, Fate.WAITING):
        if supply[fate] > 0:
            supply[fate] -= 1
            return fate
    if _is_in_a_queue(letter) or letter.message_id in records.open:
        return Fate.WAITING
    return Fate.LOST


def _recorded_fate(letter: Message, records: ServiceRecords, event_delivered: bool) -> Fate | None:  # noqa: FBT001  # one flag, private function
    """Return what became of the letter according to the service's records, or None if they do not say it.

    A letter that was closed as a duplicate counts as lost if no equal letter was delivered.
    """
    if letter.message_id in records.parked:
        return Fate.PARKED
    if letter.message_id in records.discarded:
        return Fate.DISCARDED
    if letter.message_id in records.duplicates:
        return Fate.DUPLICATE if event_delivered else Fate.LOST
    return None


def _is_delivered(send: Send, evidence: Evidence) -> bool:
    if evidence.processings is None:
        return send.message is not None and send.message.dead_lettered is None
    return evidence.processed(send.message)


def _is_in_a_queue(message: Message | None) -> bool:
    return message is not None and message.deleted is None
