"""Check the call log for too many sends while a circuit breaker was open, and for sends during a run's first wave.

Until all messages of the first wave have an outcome, no other message may be sent.
"""

from __future__ import annotations

from collections.abc import Iterator

from redrive_service.sandbox.judge.case import BreakerOpening, Experiment, ServiceRecords
from redrive_service.sandbox.judge.evidence import Event, Evidence, Send
from redrive_service.sandbox.judge.findings import Finding, Offence

#: Seconds after a breaker opened in which sends that began before may still arrive.
UNDER_WAY = 2.0


def canaries(evidence: Evidence, records: ServiceRecords) -> int:
    """Return how many messages were sent while a circuit breaker was open."""
    return sum(len(_sent_while(opening, evidence)) for opening in records.openings)


def too_many_canaries(evidence: Evidence, experiment: Experiment, records: ServiceRecords) -> Iterator[Finding]:
    """Find messages that were sent too early while a breaker was open. Per cooldown, one message may be sent."""
    if experiment.cooldown is None:
        return
    for opening in records.openings:
        for number, send in enumerate(_sent_while(opening, evidence), start=1):
            if send.at < opening.opened + number * experiment.cooldown:
                sentence = (
                    f"{send.queue} took letter {number} {send.at - opening.opened:.1f} s after its breaker opened: "
                    f"one may be sent every {experiment.cooldown:g} s."
                )
                yield Finding(Offence.OVER_BREAKER, send.queue, sentence, send.call)


def beside_the_first_wave(evidence: Evidence, experiment: Experiment) -> Iterator[Finding]:
    """Find the first send of a message after the first wave, if a message of the first wave had no outcome yet.

    Only the outcomes of first attempts count, because retries of the first wave may be sent with the next wave.
    """
    if experiment.first_wave is None:
        return
    wave: dict[str, Event] = {}
    for event, send in _in_time(evidence):
        if event.name in wave or len(wave) < experiment.first_wave:
            wave[event.name] = event
            continue
        still = next((member for member in wave.values() if _is_on_its_way(member, send)), None)
        if still is not None:
            sentence = (
                f"Call {send.call} sent event {event.name} though event {still.name}, of the first wave of "
                f"{experiment.first_wave}, was still on its way."
            )
            yield Finding(Offence.OVER_WAVE, event.name, sentence, send.call)
        return


def _sent_while(opening: BreakerOpening, evidence: Evidence) -> list[Send]:
    """Return the sends, in order, from 2 s (`UNDER_WAY`) after the breaker opened until it closed.

    Sends that began before the breaker opened may still arrive in the first 2 s.
    """
    sends = [send for _, send in _in_time(evidence)]
    end = float("inf") if opening.closed is None else opening.closed
    return [send for send in sends if opening.opened + UNDER_WAY < send.at < end]


def _in_time(evidence: Evidence) -> list[tuple[Event, Send]]:
    """Return the redrive's sends, in order of sending."""
    sends = [(event, send) for event in evidence.events.values() for send in event.sends]
    return sorted(sends, key=lambda pair: pair[1].moment)


def _is_on_its_way(event: Event, before: Send) -> bool:
    """Return whether the event's first attempt had no outcome yet when the send `before` was made.

    Retries are ignored, because they belong to no wave.
    """
    return any(
        send.moment < before.moment and send.message is not None and send.message.on_its_way_at(before.moment)
        for send in event.arrivals[:1]
    )
