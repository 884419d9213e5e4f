"""A run in words and in JSON: where it stands, who stopped it and why, how far it is, and when it will end."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from reprocessing.domain.aws.pricing import Cost, Prices
from reprocessing.domain.aws.pricing import in_words as cost_in_words
from reprocessing.domain.message.arn import name_of
from reprocessing.domain.runs.forecast import in_words
from reprocessing.management.console import when
from reprocessing.management.output import drain_output
from reprocessing.management.output.drain_output import counted
from reprocessing.models import BreakerState, Run, Wave
from reprocessing.models.run import RunKind, RunState
from reprocessing.store.outcomes import pending_outcomes
from reprocessing.store.outcomes.pending_outcomes import Expectation
from reprocessing.store.runs import late_arrivals, progress, run_cost
from reprocessing.store.runs.progress import Left, Tally
from reprocessing.store.safety import failed_answers
from reprocessing.store.safety.failed_answers import Failing

#: The last waves of a run that are told of; a standing run has many.
_WAVES = 8


@dataclass(frozen=True, slots=True)
class Seen:
    """A run as it stands.

    Attributes:
        waves: its last waves, the oldest first.
        left: what has not come to an end, by target.
        awaited: what its sent letters wait for, by target.
        elsewhere: letters that it sent and that are in other runs by now; its tally has none of them.
        spent: what SQS has charged for its sends and deletes, without the captures.
        arrived: letters captured in its dlq since it began; None for one that beat feeds, which takes them.
        failing: what most of its attempts that failed lately were answered.
    """

    run: Run
    tally: Tally
    waves: list[Wave]
    left: list[Left]
    awaited: list[Expectation]
    elsewhere: int
    spent: Cost
    arrived: int | None
    failing: Failing | None

    @classmethod
    def look(cls, run: Run, *, count_lag: float, prices: Prices) -> Seen:
        """Ask Postgres."""
        awaited = pending_outcomes.of_run(run.pk, run.dlq_id, count_lag=count_lag)
        known = pending_outcomes.known_in(awaited)
        return cls(
            run=run,
            tally=progress.tally(run.pk),
            awaited=awaited,
            elsewhere=progress.elsewhere(run.pk),
            waves=list(Wave.objects.filter(run=run).order_by("-no")[:_WAVES])[::-1],
            left=progress.left(run.pk, count_lag=count_lag, known_in=known),
            spent=run_cost.of(run.pk, prices) or Cost(),
            arrived=None if run.kind == RunKind.STANDING else late_arrivals.since(run.pk),
            failing=failed_answers.of_run(run.pk, run.dlq_id),
        )

    @property
    def done(self) -> float:
        """The share of its letters that have come to an end."""
        return 1 - self.tally.open / self.tally.letters if self.tally.letters else 1.0

    @property
    def seconds(self) -> float | None:
        """The least time until it ends; None when that is not known.

        So it is where it does not run, a breaker lets nothing go, or nothing by itself ends the wait for an outcome.
        """
        shut = any(one.known_in is None or (one.letters and one.breaker != BreakerState.CLOSED) for one in self.left)
        if shut or self.run.state not in {RunState.RUNNING, RunState.PLANNED}:
            return None
        return max((one.seconds for one in self.left), default=0.0)

    @property
    def open_wave(self) -> Wave | None:
        """The wave that it is in."""
        return next((one for one in self.waves if one.settled_at is None), None)


def lines(seen: Seen) -> Iterable[str]:
    """A run for people."""
    run, tally = seen.run, seen.tally
    yield f"{run.name}  ({run.dlq.name}, {run.kind}, {run.state})"
    if run.why:
        yield f"  {run.state:9} at {when(run.changed_at)} by {run.stopped_by}: {run.why}"
    if run.state == RunState.PAUSED:
        yield f"  to go on  manage.py resume_run {run.name} --reason WHY --confirm"
    begun = f", started {when(run.started_at)}" if run.started_at else ""
    yield f"  asked     by {run.asked_by or 'nobody'}{begun}"
    if run.selected is not None:
        behind = f", {counted(run.behind or 0, 'letter')} behind" if run.behind else ""
        yield f"  selected  {counted(run.selected, 'letter')}{behind}"
    ended = f" ({tally.percent} % at an end)" if tally.letters else ""
    yield f"  letters   {drain_output.progress(tally)}{ended}"
    if seen.elsewhere:
        moved = f"{counted(seen.elsewhere, 'letter')} that it sent"
        yield f"            {moved} {'is' if seen.elsewhere == 1 else 'are'} in other runs by now"
    if seen.failing:
        yield f"  failing   {seen.failing.answer}, {counted(seen.failing.attempts, 'attempt')} lately"
    if seen.waves:
        yield "  waves     " + "; ".join(map(_wave, seen.waves))
    yield from _forecast(seen)
    if seen.spent.most:
        yield f"  cost      so far {cost_in_words(seen.spent)}, for sends and deletes; captures serve all of the dlq"
    if seen.arrived:
        yield f"  meanwhile {counted(seen.arrived, 'letter')} more captured in {run.dlq.name}; not part of this run"


def _wave(one: Wave) -> str:
    size = "all" if one.size is None else f"{one.size:,}"
    if one.settled_at is None:
        return f"{size} (under way)"
    return f"{size} ({one.touched or 0:,} touched, {one.failed or 0:,} failed)"


def _forecast(seen: Seen) -> Iterable[str]:
    for one in seen.left:
        if not one.letters:
            continue
        rate = "no limit of rate" if one.rate is None else f"{one.rate * one.ramp:g} of {one.rate:g} letters/s now"
        shut = "" if one.breaker == BreakerState.CLOSED else f", its breaker is {one.breaker}"
        yield f"  to {one.name.rpartition(':')[2]}: {counted(one.letters, 'letter')} to be sent, {rate}{shut}"
    for sent in seen.awaited:
        letters = f"{counted(sent.unsettled, 'letter')} sent to {name_of(sent.target)}"
        yield f"  awaits    {letters}: {pending_outcomes.in_words(sent)}"
    if seen.seconds is None or not seen.tally.under_way:
        return
    if seen.tally.waiting:
        yield f"  ends      in {in_words(seen.seconds)}, if nothing fails and its rate goes on climbing"
    else:
        yield f"  ends      all are sent; what became of the last is known in {in_words(seen.seconds)} at the earliest"


def in_json(seen: Seen) -> dict[str, Any]:
    """A run for programs."""
    run, tally = seen.run, seen.tally
    ends = drain_output.came_to(run.name, run.dlq, tally, {})
    named = ("run", "dlq", "captured", "delivered", "presumed", "parked", "closed_as_duplicate", "discarded", "held")
    return {
        **{name: ends[name] for name in named},
        "waiting": tally.waiting,
        "awaiting": tally.awaiting,
        "failed_attempts": tally.failed_attempts,
        "failing": seen.failing and asdict(seen.failing),
        "in_other_runs": seen.elsewhere,
        "kind": run.kind,
        "state": run.state,
        "asked_by": run.asked_by,
        "stopped_by": run.stopped_by or None,
        "why": run.why or None,
        "started_at": run.started_at,
        "changed_at": run.changed_at,
        "finished_at": run.finished_at,
        "selection": run.selection,
        "selected": run.selected,
        "behind": run.behind,
        "done": seen.done,
        "waves": [
            {"no": one.no, "size": one.size, "touched": one.touched, "failed": one.failed, "settled": one.settled_at}
            for one in seen.waves
        ],
        "forecast_seconds": seen.seconds,
        "targets": [
            {"target": one.name, "letters": one.letters, "longest_lane": one.longest, "rate": one.rate,
             "rate_now": None if one.rate is None else one.rate * one.ramp, "breaker": one.breaker,
             "known_in": one.known_in}
            for one in seen.left
        ],
        "aws_requests": asdict(seen.spent),
        "arrived": seen.arrived,
    }  # fmt: skip
