"""Make the progress line of a drain: numbers of messages, rate, time left, and what messages wait for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from reprocessing import conf
from reprocessing.domain.errors import QueueUnreachable
from reprocessing.domain.lifecycle import LanePhase
from reprocessing.gateways.sqs import Depth, QueueAddress, depth
from reprocessing.management.command_line import command
from reprocessing.management.console import format_time
from reprocessing.management.output import drain_output, run_result_output
from reprocessing.management.output.drain_output import counted
from reprocessing.management.shared.progress import Pace
from reprocessing.management.shared.stop_text import stop_text
from reprocessing.models import DeadLetterQueue, Target
from reprocessing.pipeline.runs import other_runs
from reprocessing.store.ordering import lane_counts
from reprocessing.store.outcomes import pending_outcomes
from reprocessing.store.outcomes.pending_outcomes import PendingOutcome
from reprocessing.store.runs.progress import RunCounts
from reprocessing.store.safety import failed_answers


def progress_line(dlq: DeadLetterQueue, tally: RunCounts, pace: Pace | None = None) -> str:
    """Return the progress line of a drain: the number of messages by state, then the reasons why messages wait.

    If nobody seems to consume a target, this reason comes first. `pace` measures the rate. The line has no rate if
    `pace` is None, or if not all finished messages of a large automatic run are counted.
    """
    speed = pace.add(tally.letters - tally.open, tally.open) if pace and not tally.capped else ""
    lag = conf.current().count_lag.total_seconds()
    sent = pending_outcomes.of_targets(dlq.pk, count_lag=lag) if tally.awaiting else []
    unconsumed = [one for one in sent if pending_outcomes.is_never_empty(one)]
    reasons: Sequence[str] = [*_waits(unconsumed), stop_text(dlq)]
    if tally.waiting:
        paused = map(drain_output.paused_notice, other_runs.paused_runs(dlq))
        reasons = [*reasons, _failing(dlq), _next_attempt(dlq), *paused, *_held_back(dlq)]
    reasons = [*reasons, *_waits([one for one in sent if one not in unconsumed])]
    return " ".join([f"{run_result_output.progress_text(tally)}{speed}.", *filter(None, reasons)])


def _held_back(dlq: DeadLetterQueue) -> list[str]:
    """Return a sentence for each reason why key queues wait, such as an open breaker, with the number of key queues.

    Without ordering keys, each message has a key queue of its own, so the sentence counts messages.
    """
    what = drain_output.lane_word(dlq.ordering_key)
    reasons: Counter[str] = Counter()
    for one in lane_counts.lane_counts(dlq.pk):
        if one.why and one.phase in {LanePhase.READY, LanePhase.HELD}:
            reasons[one.why] += one.n
    return [f"{counted(lanes, what)} {'waits' if lanes == 1 else 'wait'}: {why}." for why, lanes in reasons.items()]


def _failing(dlq: DeadLetterQueue) -> str:
    """Return a sentence with the most frequent answer of recent failed attempts, or an empty text if none failed."""
    found = failed_answers.of_dlqs(dlq.pk).get(dlq.pk)
    return f"Attempts fail: {found.answer}, {counted(found.attempts, 'attempt')} recently." if found else ""


def _next_attempt(dlq: DeadLetterQueue) -> str:
    """Return a sentence with the time of the next attempt, or an empty text if a message is sent now."""
    busy = [one for one in lane_counts.lane_counts(dlq.pk) if one.phase in {LanePhase.READY, LanePhase.LEASED}]
    if any(one.due or one.phase == LanePhase.LEASED for one in busy):
        return ""
    first = min((one.due_at for one in busy if one.due_at), default=None)
    return f"The next attempt is due at {format_time(first)}." if first else ""


def _waits(some: Sequence[PendingOutcome]) -> list[str]:
    return sorted({_wait(one) for one in some})


def _wait(one: PendingOutcome) -> str:
    """Return a sentence: what must happen before the outcomes of messages sent to this target are known.

    Return an empty text if nothing must happen.
    """
    awaited = pending_outcomes.describe(one)
    if not awaited:
        return ""
    target = Target.objects.get(pk=one.target_id)
    name = str(target)
    if awaited.startswith("nothing"):
        return f"Outcomes of messages sent to {name} wait for {awaited}. The wait does not end by itself."
    if not pending_outcomes.is_never_empty(one):
        return f"Outcomes of messages sent to {name} wait for: {awaited}."
    found = _depth(target)
    if found and found.visible and not found.in_flight and pending_outcomes.has_had_time(one):
        cure = f"Start its consumer, or let SQS's acceptance count as delivered: {_accept(one)}"
        return f"Nobody seems to consume {name}: {found.visible:,} visible, none in flight. {cure}."
    visible = f"; {found.visible:,} visible" if found else ""
    asked = "; is its consumer running? The wait does not end by itself" if pending_outcomes.is_long(one) else ""
    return f"Waiting for outcomes: {awaited}{visible}{asked}."


def _accept(one: PendingOutcome) -> str:
    name = DeadLetterQueue.objects.get(pk=one.dlq_id).name
    return command("add_dlq", name, "--outcome", "accepted", "--confirm")


def _depth(target: Target) -> Depth | None:
    try:
        return depth(QueueAddress(url=target.url, region=target.region, role=target.role_arn))
    except QueueUnreachable:
        return None
