"""A run in words and in JSON: where it stands, who stopped it and why, how far it is, and when it will end."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from reprocessing.domain.forecast import in_words
from reprocessing.management import drain_words
from reprocessing.management.console import when
from reprocessing.management.drain_words import counted
from reprocessing.models import BreakerState, Run, Wave, progress
from reprocessing.models.progress import Left, Tally
from reprocessing.models.run import RunKind, RunState

#: The last waves of a run that are told of; a standing run has many.
_WAVES = 8


@dataclass(frozen=True, slots=True)
class Seen:
    """A run as it stands.

    Attributes:
        waves: its last waves, the oldest first.
        left: what is still to be sent, by target.
        arrived: letters captured in its dlq since it began; None for one that beat feeds, which takes them.
    """

    run: Run
    tally: Tally
    waves: list[Wave]
    left: list[Left]
    arrived: int | None

    @classmethod
    def look(cls, run: Run, *, count_lag: float) -> Seen:
        """Ask Postgres."""
        return cls(
            run=run,
            tally=progress.tally(run.pk),
            waves=list(Wave.objects.filter(run=run).order_by("-no")[:_WAVES])[::-1],
            left=progress.left(run.pk, count_lag=count_lag),
            arrived=None if run.kind == RunKind.STANDING else progress.arrived(run.pk),
        )

    @property
    def done(self) -> float:
        """The share of its letters that have come to an end."""
        return 1 - self.tally.open / self.tally.letters if self.tally.letters else 1.0

    @property
    def seconds(self) -> float | None:
        """The least time until it ends; None when that is not known: it does not run, or a breaker lets nothing go."""
        shut = any(one.breaker != BreakerState.CLOSED for one in self.left)
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
    begun = f", started {when(run.started_at)}" if run.started_at else ""
    yield f"  asked     by {run.asked_by or 'nobody'}{begun}"
    if run.selected is not None:
        behind = f", {counted(run.behind or 0, 'letter')} behind" if run.behind else ""
        yield f"  selected  {counted(run.selected, 'letter')}{behind}"
    yield f"  letters   {drain_words.progress(tally)} ({seen.done:.0%} at an end)"
    if seen.waves:
        yield "  waves     " + "; ".join(map(_wave, seen.waves))
    yield from _forecast(seen)
    if seen.arrived:
        yield f"  meanwhile {counted(seen.arrived, 'letter')} more captured in {run.dlq.name}; not part of this run"


def _wave(one: Wave) -> str:
    size = "all" if one.size is None else f"{one.size:,}"
    if one.settled_at is None:
        return f"{size} (under way)"
    return f"{size} ({one.touched or 0:,} touched, {one.failed or 0:,} failed)"


def _forecast(seen: Seen) -> Iterable[str]:
    for one in seen.left:
        rate = "no limit of rate" if one.rate is None else f"{one.rate * one.ramp:g} of {one.rate:g} letters/s now"
        shut = "" if one.breaker == BreakerState.CLOSED else f", its breaker is {one.breaker}"
        yield f"  to {one.name.rpartition(':')[2]}: {counted(one.letters, 'letter')} to be sent, {rate}{shut}"
    if seen.seconds is not None and seen.tally.under_way:
        yield f"  ends      in {in_words(seen.seconds)}, at the rate of this moment"


def in_json(seen: Seen) -> dict[str, Any]:
    """A run for programs."""
    run, tally = seen.run, seen.tally
    ends = drain_words.came_to(run.name, run.dlq, tally, {})
    named = ("run", "dlq", "captured", "delivered", "presumed", "parked", "closed_as_duplicate", "discarded", "held")
    return {
        **{name: ends[name] for name in named},
        "waiting": tally.waiting,
        "awaiting": tally.awaiting,
        "failed_attempts": tally.failed_attempts,
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
             "rate_now": None if one.rate is None else one.rate * one.ramp, "breaker": one.breaker}
            for one in seen.left
        ],
        "arrived": seen.arrived,
    }  # fmt: skip
