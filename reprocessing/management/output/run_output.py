"""Show a run for show_runs, as text and as JSON: its state, progress and forecast, and who paused or aborted it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from reprocessing.domain.aws.pricing import in_words as cost_in_words
from reprocessing.domain.message.arn import resource_name
from reprocessing.domain.runs.forecast import duration_in_words, rate_in_words
from reprocessing.management.console import format_time
from reprocessing.management.output import run_result_output
from reprocessing.management.output.drain_output import arrived_text, counted
from reprocessing.models import BreakerState, Run, Wave
from reprocessing.models.run import RunState
from reprocessing.pipeline.runs.run_status import RunStatus
from reprocessing.store.outcomes import pending_outcomes


def run_lines(status: RunStatus) -> Iterable[str]:
    """Yield the lines that show_runs prints about a run."""
    run = status.run
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
    if limits := _limits(run):
        yield f"  limits    {limits}"
    yield from _progress(status)
    yield from _forecast(status)
    if status.cost is None:
        yield "  cost      not counted, as the run is large"
    elif status.cost.most:
        yield f"  cost      so far {cost_in_words(status.cost)}, for sends and deletes, without captures"
    if status.arrived and (arrived := arrived_text(status.arrived)):
        yield f"  since     {arrived} more captured in {run.dlq.name}; not part of this run"


def _progress(status: RunStatus) -> Iterable[str]:
    tally = status.tally
    least = "at least " if tally.is_lower_bound else ""
    ended = f" ({least}{tally.percent} % finished)" if tally.letters else ""
    yield f"  messages  {run_result_output.progress_text(tally)}{ended}"
    if status.in_other_runs is None:
        yield "            messages that it sent, now in other runs: not counted, as the run is large"
    elif status.in_other_runs:
        yield f"            {counted(status.in_other_runs, 'message')} that it sent, now in other runs"
    if status.failing:
        yield f"  failing   {status.failing.answer}, {counted(status.failing.attempts, 'attempt')} recently"
    yield from (f"  blocked   {text}" for text in status.blocking)
    if status.waves:
        yield "  waves     " + "; ".join(map(_wave, status.waves))


def _limits(run: Run) -> str:
    rate = "" if run.rate is None else f"at most {rate_in_words(run.rate, digits=12)} to each target"
    return "; ".join(filter(None, [rate, "" if run.waits_for_outcomes else "does not wait for outcomes"]))


def _wave(one: Wave) -> str:
    size = "all" if one.size is None else f"{one.size:,}"
    if one.settled_at is None:
        return f"{size} (in progress)"
    return f"{size} ({one.sent or 0:,} sent, {one.failed or 0:,} failed)"


def _forecast(status: RunStatus) -> Iterable[str]:
    for one in status.left if status.run.state not in {RunState.FINISHED, RunState.ABORTED} else ():
        if not one.letters:
            continue
        rate = "no rate limit" if one.rate is None else f"{one.rate * one.ramp:g} of {one.rate:g} messages/s now"
        breaker = "" if one.breaker == BreakerState.CLOSED else f", its breaker is {one.breaker}"
        yield f"  to {one.name.rpartition(':')[2]}: {counted(one.letters, 'message')} to be sent, {rate}{breaker}"
    for sent in status.awaited:
        messages = f"{counted(sent.unsettled, 'message')} sent to {resource_name(sent.target)}"
        yield f"  awaits    {messages}: {pending_outcomes.describe(sent)}"
    if status.seconds is None or not status.tally.under_way:
        return
    if status.tally.waiting:
        yield f"  ends      in {duration_in_words(status.seconds)}, if nothing fails and the rate keeps ramping up"
    else:
        left = duration_in_words(status.seconds)
        yield f"  ends      all are sent; the last outcome is known in {left} at the earliest"


def in_json(status: RunStatus) -> dict[str, Any]:
    """Return a run with its progress and forecast as JSON.

    `capped`: names of the counts that may be higher; `captured` is then a lower limit, too.
    """
    run, tally = status.run, status.tally
    return {
        "run": run.name,
        "dlq": run.dlq.name,
        **run_result_output.counts_in_json(tally),
        "waiting": tally.waiting,
        "awaiting": tally.awaiting,
        "failed_attempts": tally.failed_attempts,
        "capped": sorted(tally.capped),
        "failing": status.failing and asdict(status.failing),
        "in_other_runs": status.in_other_runs,
        "kind": run.kind,
        "state": run.state,
        "asked_by": run.asked_by,
        "stopped_by": run.stopped_by or None,
        "why": run.why or None,
        "started_at": run.started_at,
        "changed_at": run.changed_at,
        "finished_at": run.finished_at,
        "selection": run.selection,
        "rate": run.rate,
        "waits_for_outcomes": run.waits_for_outcomes,
        "selected": run.selected,
        "behind": run.behind,
        "done": status.done,
        "waves": [
            {"no": one.no, "size": one.size, "sent": one.sent, "failed": one.failed, "settled": one.settled_at}
            for one in status.waves
        ],
        "forecast_seconds": status.seconds,
        "targets": [
            {"target": one.name, "messages": one.letters, "longest_lane": one.longest, "rate": one.rate,
             "rate_now": None if one.rate is None else one.rate * one.ramp, "breaker": one.breaker,
             "known_in": one.known_in}
            for one in status.left
        ],
        "aws_requests": status.cost and asdict(status.cost),
        "arrived": status.arrived.n if status.arrived else None,
        "arrived_is_minimum": status.arrived is not None and status.arrived.is_minimum,
    }  # fmt: skip
