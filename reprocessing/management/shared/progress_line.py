"""The line of progress that a drain tells again and again: how far it is, and why nothing moves where nothing does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from reprocessing import conf
from reprocessing.domain.errors import QueueIsOutOfReach
from reprocessing.domain.lifecycle import LanePhase
from reprocessing.gateways.sqs import QueueAddress, depth
from reprocessing.management.console import when
from reprocessing.management.output import drain_output
from reprocessing.management.shared.stops_in_words import stop_of
from reprocessing.models import DeadLetterQueue, Target
from reprocessing.pipeline.runs import forecast_plan
from reprocessing.store.dlqs import dlq_status
from reprocessing.store.outcomes import pending_outcomes
from reprocessing.store.outcomes.pending_outcomes import Expectation
from reprocessing.store.runs.progress import Tally
from reprocessing.store.safety import failed_answers


def line(dlq: DeadLetterQueue, tally: Tally) -> str:
    """A line of progress, and why nothing moves where nothing can: first that nobody consumes a target, if so."""
    lag = conf.current().count_lag.total_seconds()
    sent = pending_outcomes.of_targets(dlq.pk, count_lag=lag) if tally.awaiting else []
    unconsumed = [one for one in sent if pending_outcomes.is_never_empty(one)]
    reasons: Sequence[str] = [*_waits(unconsumed), stop_of(dlq)]
    if tally.waiting:
        reasons = [
            *reasons,
            _failing(dlq),
            _next_attempt(dlq),
            *map(drain_output.waits_for, forecast_plan.paused(dlq)),
            *_held_back(dlq),
        ]
    reasons = [*reasons, *_waits([one for one in sent if one not in unconsumed])]
    return " ".join([f"{drain_output.progress(tally)}.", *filter(None, reasons)])


def _held_back(dlq: DeadLetterQueue) -> list[str]:
    """What holds lanes back now, each reason once: a wave, a breaker, a target's health, a rule, a rate."""
    reasons: Counter[str] = Counter()
    for one in dlq_status.lanes(dlq.pk):
        if one.why and one.phase in {LanePhase.READY, LanePhase.HELD}:
            reasons[one.why] += one.n
    return [f"{drain_output.counted(lanes, 'lane')}: {why}." for why, lanes in reasons.items()]


def _failing(dlq: DeadLetterQueue) -> str:
    """What most of the attempts that failed lately were answered; empty where none did."""
    found = failed_answers.of_dlqs(dlq.pk).get(dlq.pk)
    return f"Attempts fail: {found.answer}, {drain_output.counted(found.attempts, 'attempt')} lately." if found else ""


def _next_attempt(dlq: DeadLetterQueue) -> str:
    """When the first lane's rest is over; empty where one is due or at work already."""
    busy = [one for one in dlq_status.lanes(dlq.pk) if one.phase in {LanePhase.READY, LanePhase.LEASED}]
    if any(one.due or one.phase == LanePhase.LEASED for one in busy):
        return ""
    first = min((one.due_at for one in busy if one.due_at), default=None)
    return f"The next attempt is due at {when(first)}." if first else ""


def _waits(some: Sequence[Expectation]) -> list[str]:
    return sorted({_wait(one) for one in some})


def _wait(one: Expectation) -> str:
    """What the outcomes of a target's letters wait for, and whether that comes by itself."""
    awaited = pending_outcomes.in_words(one)
    if not awaited:
        return ""
    target = Target.objects.get(pk=one.target_id)
    name = str(target)
    if awaited.startswith("nothing"):
        return f"Outcomes of letters sent to {name} wait for {awaited}. The wait has no end by itself."
    if not pending_outcomes.is_never_empty(one):
        return f"Outcomes of letters sent to {name} wait for: {awaited}."
    asked = "; is its consumer running? The wait has no end by itself" if pending_outcomes.is_long(one) else ""
    return f"Outcomes wait: {awaited}{_visible(target)}{asked}."


def _visible(target: Target) -> str:
    try:
        return f"; {depth(QueueAddress(url=target.url, region=target.region, role=target.role_arn)).visible:,} visible"
    except QueueIsOutOfReach:
        return ""
