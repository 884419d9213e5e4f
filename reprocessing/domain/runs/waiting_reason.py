"""Say in one sentence what a run waits for, or that it sends. Of several reasons, a fixed order decides."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Final

from reprocessing.domain.runs.forecast import rate_in_words
from reprocessing.domain.safety.failure_cause import WAITS_FOR_CAUSE

#: A run counts as sending at the allowed rate if it reaches this share of that rate.
_FULL_RATE: Final = 0.8
_EVERYTHING: Final = re.compile("^Everything(?= is stopped by )")  # inside a sentence, it begins with a small letter
_BREAKER: Final = "the circuit breaker is "
_HEALTH: Final = "the target is not known to be healthy"
_WAVE: Final = "the run's wave"
#: What people can do about a run whose messages come first in another run's key queues, by its state.
_NEXT: Final = {
    "planned": " Start or abort that run.",
    "paused": " Resume that run.",
    "finished": " Continue that run.",
    "aborted": " The automatic run, or the next run of the DLQ, takes its messages over.",
}


class WaitsFor(StrEnum):
    """What a run does, or the kind of reason for which it waits."""

    NOTHING = "nothing"  #: the run has ended, or has no unfinished message
    SENDS = "sends"  #: messages are sent now, more slowly than the rate permits
    RATE = "rate"  #: messages are sent now, as fast as the rate permits
    PERSON = "person"  #: a person must start or resume the run
    APPROVAL = "approval"
    STOP = "stop"  #: the sends are stopped
    AWS = "aws"  #: AWS's own redrive moves the messages
    PROCESS = "process"  #: beat or a worker
    CAPTURE = "capture"
    BREAKER = "breaker"
    HEALTH = "health"
    WAVE = "wave"
    KEY = "key"  #: a parked message, a rule or another run's message holds key queues
    OUTCOME = "outcome"
    BACKOFF = "backoff"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Waiting:
    """What a run waits for: the kind of reason, and a sentence for people."""

    kind: WaitsFor
    text: str


@dataclass(frozen=True, slots=True)
class LaneGroup:
    """Key queues of a run that wait for the same reason.

    Attributes:
        n: how many key queues.
        why: what the key queues wait for, in words.
        moves: whether messages of the key queues are being sent, or may be sent now.
        is_leased: whether workers have leased the key queues.
        is_barred: whether no worker may take the key queues now.
        is_held: whether the key queues wait for the decision of a person.
        due_at: when the first message of the key queues may be sent.
        ahead: the name of another run, if its messages come first in these key queues; else empty. With such a run, the
            attributes above are about its messages.
        ahead_state: the state of the run `ahead`.
    """

    n: int
    why: str
    moves: bool = False
    is_leased: bool = False
    is_barred: bool = False
    is_held: bool = False
    due_at: datetime | None = None
    ahead: str = ""
    ahead_state: str = ""

    @property
    def waits_for_cause(self) -> bool:
        """Return whether the first messages have used up their attempts, and why they failed is not known yet."""
        return not self.is_leased and self.why == WAITS_FOR_CAUSE


@dataclass(frozen=True, slots=True)
class NotClosedBreaker:
    """A circuit breaker that is open, or half open (`is_open` is false).

    `name`: the target, and the rate class if the breaker is for a rate class. `until`: when the next canary (a single
    message that tests the target) may be sent.
    """

    name: str
    is_open: bool
    until: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """What is known about a run. Texts and lists are empty if there is nothing to say.

    Attributes:
        state: planned, running, paused, finished or aborted.
        state_text: who changed the state, and why.
        is_automatic: whether the run redrives all new messages of a DLQ, and does not end.
        is_selected: whether the selection of the run's messages is complete.
        is_empty: whether the selection is complete, and has no message.
        approval: the number of an open request for approval to start or resume the run. None if there is none.
        stop: who stopped the sends, and why.
        aws: a sentence that says that AWS's own redrive moves the messages.
        missing: sentences about processes that do not run: first about beat, then about the workers.
        lanes: the run's key queues, grouped by what they wait for.
        breakers: the circuit breakers that are not closed.
        failing_checks: targets whose health check does not pass, with the reason.
        captured: how many messages no worker has queued yet.
        awaiting: how many sent messages have no outcome yet.
        held: how many messages wait for the decision of a person.
        open: how many messages are unfinished in all.
        awaited: what the outcomes of sent messages still wait for, in words.
        wave: how many messages the present wave sends. None without waves, or in the last wave, which has no limit.
        measured: messages a second that were sent lately.
        allowed: messages a second that the rate limits allow. None if there is no limit.
    """

    state: str
    state_text: str = ""
    is_automatic: bool = False
    is_selected: bool = True
    is_empty: bool = False
    approval: int | None = None
    stop: str = ""
    aws: str = ""
    missing: tuple[str, ...] = ()
    lanes: tuple[LaneGroup, ...] = ()
    breakers: tuple[NotClosedBreaker, ...] = ()
    failing_checks: tuple[str, ...] = ()
    captured: int = 0
    awaiting: int = 0
    held: int = 0
    open: int = 0
    awaited: str = ""
    wave: int | None = None
    measured: float = 0.0
    allowed: float | None = None


#: What a plan waits for of which no message would be sent.
NOTHING_TO_SEND: Final = Waiting(
    WaitsFor.NOTHING, "It has no message to send. A plan that nobody starts is aborted after a day."
)


def waiting_reason(run: RunFacts, now: datetime) -> Waiting:
    """Return what the run waits for."""
    match run.state:
        case "planned":
            return next(_of_plan(run))
        case "paused":
            return next(
                _approval(run), Waiting(WaitsFor.PERSON, f"{run.state_text} It sends nothing until it is resumed.")
            )
        case "running":
            return next(_of_running(run, now))
        case _:
            return Waiting(WaitsFor.NOTHING, run.state_text)


def _of_plan(run: RunFacts) -> Iterator[Waiting]:
    if run.is_empty:
        yield NOTHING_TO_SEND
    if run.stop:
        yield Waiting(WaitsFor.STOP, f"{run.stop} Until then the run cannot be started.")
    if run.aws:
        yield Waiting(WaitsFor.AWS, f"{run.aws} Until then the run cannot be started.")
    if not run.is_selected:
        yield from (Waiting(WaitsFor.PROCESS, text) for text in run.missing)
        yield Waiting(WaitsFor.CAPTURE, "Waits for a capture of the DLQ. Then its messages are selected.")
    yield from _approval(run)
    yield Waiting(WaitsFor.PERSON, "Waits for a person to start it.")


def _approval(run: RunFacts) -> Iterator[Waiting]:
    if run.approval is not None:
        yield Waiting(WaitsFor.APPROVAL, f"Waits for a second person: approval {run.approval} is requested.")


def _of_running(facts: RunFacts, now: datetime) -> Iterator[Waiting]:
    run = replace(facts, lanes=tuple(lanes for lanes in facts.lanes if not lanes.ahead))
    if run.stop:
        yield Waiting(WaitsFor.STOP, f"Waits: {_EVERYTHING.sub('everything', run.stop)}")
    if run.aws:
        yield Waiting(WaitsFor.AWS, run.aws)
    if not run.open:
        text = "Waits for new messages in the DLQ." if run.is_automatic else "All its messages are finished."
        yield Waiting(WaitsFor.NOTHING, text)
    yield from _sends(run)
    yield from (Waiting(WaitsFor.PROCESS, text) for text in run.missing[::-1])
    if due := sum(lanes.n for lanes in run.lanes if lanes.moves):
        yield Waiting(WaitsFor.PROCESS, f"Waits for a worker to take {_key_queues(due)}.")
    if run.captured:
        yield Waiting(WaitsFor.PROCESS, f"Waits for a worker to queue {_messages(run.captured)}.")
    yield from _barred(run, now)
    if any(lanes.waits_for_cause for lanes in run.lanes):
        yield Waiting(WaitsFor.OUTCOME, f"Waits: {WAITS_FOR_CAUSE}.")
    if run.awaiting:
        yield Waiting(WaitsFor.OUTCOME, f"Waits for outcomes: {run.awaited or _messages(run.awaiting)}.")
    yield from _later(run)
    yield from _behind(facts)
    held = sum(lanes.n for lanes in run.lanes if lanes.is_held)
    if run.held or held:
        what = _messages(run.held) if run.held else _key_queues(held)
        yield Waiting(WaitsFor.KEY, f"Waits for a person to decide: a parked message or a rule holds {what}.")
    yield Waiting(WaitsFor.OTHER, "Waits for a worker.")


def _sends(run: RunFacts) -> Iterator[Waiting]:
    if not any(lanes.moves for lanes in run.lanes):
        return
    if run.allowed is not None and run.measured >= _FULL_RATE * run.allowed > 0:
        yield Waiting(WaitsFor.RATE, f"Sends as fast as the rate limit permits, {rate_in_words(run.allowed)} now.")
    elif run.measured or any(lanes.is_leased for lanes in run.lanes):
        yield Waiting(WaitsFor.SENDS, "Sends messages.")


def _barred(run: RunFacts, now: datetime) -> Iterator[Waiting]:
    barred = [lanes for lanes in run.lanes if lanes.is_barred]
    if not barred:
        return
    most = max(barred, key=lambda lanes: lanes.n)
    if most.why.startswith(_BREAKER) and run.breakers:
        yield Waiting(WaitsFor.BREAKER, _of_breaker(run.breakers[0], now))
    elif most.why == _HEALTH and run.failing_checks:
        yield Waiting(WaitsFor.HEALTH, f"Waits for a health check: {run.failing_checks[0]}.")
    elif _WAVE in most.why:
        size = "" if run.wave is None else f" of {run.wave:,}"
        yield Waiting(WaitsFor.WAVE, f"Waits for its wave{size}: {most.why}.")
    else:
        yield Waiting(WaitsFor.KEY if most.is_held else WaitsFor.OTHER, f"Waits: {most.why}.")


def _of_breaker(breaker: NotClosedBreaker, now: datetime) -> str:
    waits = f"Waits: the circuit breaker of {breaker.name} is"
    if breaker.is_open and breaker.until and breaker.until > now:
        return f"{waits} open until {breaker.until:%H:%M:%S} UTC."
    if breaker.is_open:
        return f"{waits} open. One message is sent next, as a test."
    return f"{waits} half open. The outcome of its canary is not known yet."


def _later(run: RunFacts) -> Iterator[Waiting]:
    later = [lanes.due_at for lanes in run.lanes if lanes.due_at and not (lanes.is_barred or lanes.is_held)]
    if later:
        yield Waiting(WaitsFor.BACKOFF, f"Waits for the next attempt, at {min(later):%H:%M:%S} UTC.")


def _behind(run: RunFacts) -> Iterator[Waiting]:
    behind = [lanes for lanes in run.lanes if lanes.ahead]
    if behind:
        most = max(behind, key=lambda lanes: (lanes.ahead_state != "running", lanes.n))
        text = f"Waits for the run {most.ahead}, whose messages come first in {_key_queues(most.n)}: {most.why}."
        yield Waiting(WaitsFor.KEY, f"{text}{_NEXT.get(most.ahead_state, '')}")


def _messages(n: int) -> str:
    return f"{n:,} message{'' if n == 1 else 's'}"


def _key_queues(n: int) -> str:
    return f"{n:,} key queue{'' if n == 1 else 's'}"
