"""Check the sends of a redrive in the call log: order, overlap, repeats, rate, attempts, contents and queues."""

from __future__ import annotations

from bisect import insort
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from itertools import takewhile

from redrive_service.sandbox.judge.case import Experiment, ServiceRecords
from redrive_service.sandbox.judge.evidence import Event, Evidence, Message, Send
from redrive_service.sandbox.judge.findings import Finding, Offence

WINDOW = 1.0  # seconds of the period in which sends are counted for the rate


def too_many(evidence: Evidence) -> Iterator[Finding]:
    """Find repeated sends: an event was sent again, although its message that was sent before had not come back.

    An event is all messages that ask for the same work. Only one of them may be delivered.
    """
    for event in evidence.events.values():
        arrivals = event.arrivals
        for position, send in enumerate(arrivals):
            earlier = next(
                (arrival for arrival in arrivals[:position] if _had_not_returned(arrival, send.moment)), None
            )
            if earlier is not None:
                sentence = (
                    f"Event {event.name} was sent in call {send.call} (attempt {send.attempt} of {send.letter}) though "
                    f"call {earlier.call}'s message (attempt {earlier.attempt} of {earlier.letter}) had not come back."
                )
                yield Finding(Offence.DUPLICATE, event.name, sentence, send.call)


def reordered(evidence: Evidence, experiment: Experiment, records: ServiceRecords) -> Iterator[Finding]:
    """Find letters (dead messages) that were sent out of order: before an earlier letter, or after a later one.

    The service does not know a letter before it receives it from the DLQ. So it may have sent later letters already.
    Sending the late letter is then an error, unless a person released it, or all later letters came back.
    """
    for lane, events in evidence.lanes().items():
        ahead: list[Event] = events
        gone: list[Event] = []
        for event, send in _in_time(events):
            ahead = [waiting for waiting in ahead if not _is_over(waiting, send.moment, experiment, records)]
            passed = _first_open(ahead, event, send, experiment, records)
            if passed is None and _is_late(event, send, records):
                passed = _last_gone(gone, event, send)
            if passed is not None:
                sentence = (
                    f"Lane {lane[1]}: call {send.call} sent event {event.name} (number {event.sequence}), "
                    f"out of order with event {passed.name} (number {passed.sequence})."
                )
                yield Finding(Offence.REORDERED, event.name, sentence, send.call, passed.name)
            insort(gone, event, key=lambda placed: placed.sequence)


def overlapping(evidence: Evidence, experiment: Experiment) -> Iterator[Finding]:
    """Find sends of a lane (ordering key) at a time when another message of the lane had no outcome.

    If `advance` of the experiment is "accepted", this is allowed.
    """
    if experiment.advance == "accepted":
        return
    for lane, events in evidence.lanes().items():
        under_way: list[Event] = []
        for event, send in _in_time(events):
            under_way = [travelling for travelling in under_way if _is_on_its_way(travelling, send.moment)]
            other = next((travelling for travelling in under_way if travelling is not event), None)
            if other is not None:
                sentence = (
                    f"Lane {lane[1]}: call {send.call} sent event {event.name} while event {other.name} was on its way."
                )
                yield Finding(Offence.OVERLAP, event.name, sentence, send.call)
            under_way.append(event)


def too_fast(evidence: Evidence, experiment: Experiment) -> Iterator[Finding]:
    """Find sends that exceed the rate: within one second, the queue got more than `rate + burst` messages."""
    if experiment.rate is None:
        return
    allowed = experiment.rate * WINDOW + experiment.burst
    windows: dict[str, deque[float]] = defaultdict(deque)
    sends = (send for event in evidence.events.values() for send in event.sends if send.message is not None)
    for send in sorted(sends, key=lambda sent: sent.moment):
        window = windows[send.queue]
        window.append(send.at)
        while window[0] <= send.at - WINDOW:
            window.popleft()
        if len(window) > allowed:
            sentence = f"{send.queue} took {len(window)} letters in the second to {send.at:.3f}: at most {allowed:g}."
            yield Finding(Offence.OVER_RATE, send.queue, sentence, send.call)


def too_often(evidence: Evidence, experiment: Experiment, records: ServiceRecords) -> Iterator[Finding]:
    """Find dead messages (letters) that were sent more often than `max_attempts`, by sends or by attempt numbers.

    A send that failed during an outage of the consumer, or as a canary of a circuit breaker, does not count.
    """
    if experiment.max_attempts is None:
        return
    for event in evidence.events.values():
        accepted: dict[str, int] = defaultdict(int)
        tried: dict[str, set[int]] = defaultdict(set)
        for send in event.sends:
            if _failed_in(experiment.outages, evidence, send) or _failed_as_a_canary(records, evidence, send):
                continue
            accepted[send.letter] += send.message is not None
            tried[send.letter].add(send.attempt)
        for letter, attempts in tried.items():
            most = max(accepted[letter], len(attempts))
            if most > experiment.max_attempts:
                sentence = f"Letter {letter} (event {event.name}) was sent {most} x: at most {experiment.max_attempts}."
                yield Finding(Offence.OVER_ATTEMPTS, event.name, sentence)


def _failed_in(outages: Sequence[tuple[float, float]], evidence: Evidence, send: Send) -> bool:
    """Return whether the consumer received the sent message only during outages, and failed each time."""
    if send.message is None or evidence.processings is None:
        return False
    lines = evidence.processings.get(send.message.message_id, ())
    return bool(lines) and all(
        not line.ok and any(since <= line.started <= until for since, until in outages) for line in lines
    )


def _failed_as_a_canary(records: ServiceRecords, evidence: Evidence, send: Send) -> bool:
    """Return whether the message was sent while the breaker was open or half open, and was not processed."""
    on_trial = any(
        opening.opened <= send.at and (opening.closed is None or send.at <= opening.closed)
        for opening in records.openings
    )
    return on_trial and not evidence.processed(send.message)


def altered(evidence: Evidence, experiment: Experiment) -> Iterator[Finding]:
    """Find sends whose body and attributes are not those of a dead message (letter) of the same event."""
    for event in evidence.events.values():
        known = [letter for letter in event.letters if letter.md5 is not None]
        if event.letters and not known:
            continue  # its letters failed before the log began, so their content is not known
        for send in event.sends:
            kept = any(_carries(send, letter, experiment.mark) for letter in known if letter.md5 == send.md5)
            if not kept:
                sentence = f"Call {send.call} sent event {event.name} with content that none of its letters had."
                yield Finding(Offence.ALTERED, event.name, sentence, send.call)


def astray(evidence: Evidence) -> Iterator[Finding]:
    """Find sends to a wrong queue: a queue in which no message of the event had failed."""
    for event in evidence.events.values():
        sources = {letter.failed_in for letter in event.letters}
        for send in event.sends:
            if send.queue not in sources and None not in sources:
                sentence = f"Event {event.name} was sent to {send.queue} in call {send.call}; it failed elsewhere."
                yield Finding(Offence.ASTRAY, event.name, sentence, send.call)


def _carries(send: Send, letter: Message, mark: str) -> bool:
    """Return whether a send has all attributes of a letter, without the attribute `mark`, which redrives replace."""
    return all(send.attributes.get(name) == value for name, value in letter.attributes.items() if name != mark)


def _had_not_returned(send: Send, moment: int) -> bool:
    return send.message is not None and not send.message.was_received_by(moment)


def _is_on_its_way(event: Event, moment: int) -> bool:
    return any(
        send.moment < moment and send.message is not None and send.message.on_its_way_at(moment)
        for send in event.arrivals
    )


def _in_time(events: list[Event]) -> list[tuple[Event, Send]]:
    """Return the sends of these events that put a message into a queue, in order of sending."""
    return sorted(((event, send) for event in events for send in event.arrivals), key=lambda pair: pair[1].moment)


def _first_open(
    ahead: list[Event], event: Event, send: Send, experiment: Experiment, records: ServiceRecords
) -> Event | None:
    """Return the first event of the lane that should have been sent before this send, or None if there is none.

    `ahead` has the events of the lane that may still have to be sent, in order.
    """
    before = takewhile(lambda candidate: candidate.sequence < event.sequence, ahead)
    return next((candidate for candidate in before if _is_open(candidate, send.moment, experiment, records)), None)


def _last_gone(gone: list[Event], event: Event, send: Send) -> Event | None:
    """Return an event that is later in the lane, but was sent before `send` and had not come back by then, or None.

    `gone` has the events of the lane that were sent already, in order of their sequence.
    """
    behind = takewhile(lambda candidate: candidate.sequence > event.sequence, reversed(gone))
    return next(
        (
            candidate
            for candidate in behind
            if any(_had_not_returned(its, send.moment) for its in _before(candidate, send))
        ),
        None,
    )


def _before(event: Event, send: Send) -> Iterator[Send]:
    return (arrival for arrival in event.arrivals if arrival.moment < send.moment)


def _is_late(event: Event, send: Send, records: ServiceRecords) -> bool:
    """Return whether this is the first send of its event, and no person released it. Only such a send can be late."""
    released = any(letter.message_id in records.released for letter in event.letters)
    return send is event.arrivals[0] and not released


def _is_over(event: Event, moment: int, experiment: Experiment, records: ServiceRecords) -> bool:
    """Return whether no later event of the lane had to wait for this event at `moment` or afterwards.

    This is so if the event's last message was sent before `moment`, never came back, and is not open (`_is_open`).
    """
    if not event.arrivals or event.arrivals[-1].moment >= moment:
        return False
    message = event.arrivals[-1].message
    came_back = message is None or bool(message.dlq_receives)
    return not came_back and not _is_open(event, moment, experiment, records)


def _is_open(event: Event, moment: int, experiment: Experiment, records: ServiceRecords) -> bool:
    """Return whether later messages of the lane (ordering key) had to wait for this event at this moment."""
    if not any(letter.was_received_by(moment) for letter in event.letters):
        return False  # not yet received from the dlq
    if any(letter.message_id in records.released for letter in event.letters):
        return False  # a person decided when it was sent
    sent = [send for send in event.arrivals if send.moment < moment]
    if _was_put_aside(event, sent, moment, experiment, records):
        return False
    if not sent or sent[-1].message is None or sent[-1].message.was_received_by(moment):
        return True
    return experiment.advance == "settled" and sent[-1].message.on_its_way_at(moment)


def _was_put_aside(
    event: Event, sent: list[Send], moment: int, experiment: Experiment, records: ServiceRecords
) -> bool:
    """Return whether the service had parked, discarded or closed the event's letters, so that it sends them no more.

    At least one letter is parked, discarded or closed as a duplicate, and all others are in the target.
    """
    aside = sum(letter.message_id in records.put_aside for letter in event.letters)
    latest = {send.letter: send.message for send in sent}
    stayed = sum(
        message is not None
        and not message.was_received_by(moment)
        and not (experiment.advance == "settled" and message.on_its_way_at(moment))
        for message in latest.values()
    )
    return aside > 0 and aside + stayed >= len(event.letters) and _was_given_up_by(event, moment)


def _was_given_up_by(event: Event, moment: int) -> bool:
    """Return whether all sends and returns of the event were before `moment`, as is necessary for `_was_put_aside`."""
    seen = [message.dlq_receives[0] for message in event.letters if message.dlq_receives]
    back = [send.message.dlq_receives[0] for send in event.arrivals if send.message and send.message.dlq_receives]
    return max([*seen, *back, *(send.moment for send in event.sends)]) < moment
