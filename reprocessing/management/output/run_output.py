"""Show a run for show_runs, as text and as JSON: its state, progress and forecast, and who paused or aborted it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from reprocessing.domain.aws.pricing import in_words as cost_in_words
from reprocessing.domain.message.arn import resource_name
from reprocessing.domain.runs.forecast import duration_in_words
from reprocessing.management.console import format_time
from reprocessing.management.output import run_result_output
from reprocessing.management.output.drain_output import counted
from reprocessing.models import BreakerState, Wave
from reprocessing.models.run import RunState
from reprocessing.pipeline.runs.run_status import RunStatus
from reprocessing.store.outcomes import pending_outcomes


def run_lines(seen: RunStatus) -> Iterable[str]:
    """Yield the lines that show_runs prints about a run."""
    run, tally = seen.run, seen.tally
    yield f"{run.name}  ({run.dlq.name}, {run.kind}, {run.state})"
    if run.why:
        yield f"  {run.state:9} at {format_time(run.changed_at)} by {run.stopped_by}: {run.why}"
    if run.state == RunState.PAUSED:
        yield f"  resume    manage.py resume_run {run.name} --reason WHY --confirm"
    begun = f", started {format_time(run.started_at)}" if run.started_at else ""
    yield f"  asked     by {run.asked_by or 'nobody'}{begun}"
    if run.selected is not None:
        behind = (
            f", {counted(run.behind or 0, 'message')} not sent (earlier messages of their keys are not in this run)"
            if run.behind
            else ""
        )
        yield f"  selected  {counted(run.selected, 'message')}{behind}"
    ended = f" ({tally.percent} % finished)" if tally.letters else ""
    yield f"  messages  {run_result_output.progress_text(tally)}{ended}"
    if seen.in_other_runs:
        yield f"            {counted(seen.in_other_runs, 'message')} that it sent, now in other runs"
    if seen.failing:
        yield f"  failing   {seen.failing.answer}, {counted(seen.failing.attempts, 'attempt')} recently"
    if seen.waves:
        yield "  waves     " + "; ".join(map(_wave, seen.waves))
    yield from _forecast(seen)
    if seen.cost.most:
        yield f"  cost      so far {cost_in_words(seen.cost)}, for sends and deletes, without captures"
    if seen.arrived:
        yield f"  since     {counted(seen.arrived, 'message')} more captured in {run.dlq.name}; not part of this run"


def _wave(one: Wave) -> str:
    size = "all" if one.size is None else f"{one.size:,}"
    if one.settled_at is None:
        return f"{size} (in progress)"
    return f"{size} ({one.touched or 0:,} sent, {one.failed or 0:,} failed)"


def _forecast(seen: RunStatus) -> Iterable[str]:
    for one in seen.left:
        if not one.letters:
            continue
        rate = "no rate limit" if one.rate is None else f"{one.rate * one.ramp:g} of {one.rate:g} messages/s now"
        shut = "" if one.breaker == BreakerState.CLOSED else f", its breaker is {one.breaker}"
        yield f"  to {one.name.rpartition(':')[2]}: {counted(one.letters, 'message')} to be sent, {rate}{shut}"
    for sent in seen.awaited:
        messages = f"{counted(sent.unsettled, 'message')} sent to {resource_name(sent.target)}"
        yield f"  awaits    {messages}: {pending_outcomes.describe(sent)}"
    if seen.seconds is None or not seen.tally.under_way:
        return
    if seen.tally.waiting:
        yield f"  ends      in {duration_in_words(seen.seconds)}, if nothing fails and the rate keeps ramping up"
    else:
        left = duration_in_words(seen.seconds)
        yield f"  ends      all are sent; the last outcome is known in {left} at the earliest"


def in_json(seen: RunStatus) -> dict[str, Any]:
    """Return a run with its progress and forecast as JSON."""
    run, tally = seen.run, seen.tally
    return {
        "run": run.name,
        "dlq": run.dlq.name,
        **run_result_output.counts_in_json(tally),
        "waiting": tally.waiting,
        "awaiting": tally.awaiting,
        "failed_attempts": tally.failed_attempts,
        "failing": seen.failing and asdict(seen.failing),
        "in_other_runs": seen.in_other_runs,
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
            {"target": one.name, "messages": one.letters, "longest_lane": one.longest, "rate": one.rate,
             "rate_now": None if one.rate is None else one.rate * one.ramp, "breaker": one.breaker,
             "known_in": one.known_in}
            for one in seen.left
        ],
        "aws_requests": asdict(seen.cost),
        "arrived": seen.arrived,
    }  # fmt: skip
