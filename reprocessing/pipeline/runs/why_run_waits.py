"""Find what a run waits for, such as a stop, an approval, a circuit breaker, a health check or a wave."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from reprocessing.domain.lifecycle import LanePhase
from reprocessing.domain.message.arn import resource_name
from reprocessing.domain.runs.waiting_reason import LaneGroup, NotClosedBreaker, RunFacts, Waiting, waiting_reason
from reprocessing.domain.safety.failure_cause import WAITS_FOR_CAUSE
from reprocessing.models import Approval, BreakerState, Run, Target
from reprocessing.models.audit import ApprovalState
from reprocessing.models.run import RunKind, RunState
from reprocessing.store.aws import aws_redrives
from reprocessing.store.dlqs import automatic_redrive
from reprocessing.store.ordering import lane_counts
from reprocessing.store.ordering.lane_counts import LaneCount
from reprocessing.store.runs.progress import RunCounts
from reprocessing.store.safety import breaker_status, health_checks, stops
from reprocessing.store.safety.breaker_status import BreakerStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """What the caller has read about a started run.

    Attributes:
        tally: letter counts of the run.
        lanes: counts of the run's lanes, by state and reason.
        breakers: the circuit breakers of its targets.
        wave: max messages of the open wave; None: no wave is open, or the last wave is open, which has no max.
        awaited: a text about the outcomes that are not known yet.
        measured: the measured rate, in messages a second.
        allowed: the allowed rate, in messages a second; None: no limit.
    """

    tally: RunCounts
    lanes: list[LaneCount]
    breakers: list[BreakerStatus]
    wave: int | None
    awaited: str
    measured: float
    allowed: float | None


def why_waits(run: Run, now: datetime, *, state_text: str, observed: Observed | None) -> Waiting:
    """Return what a run waits for.

    `state_text`: a sentence about the run's state. `observed`: what the caller has read; None: the run was not started.
    """
    moved = aws_redrives.current(run.dlq_id)
    moves = run.state in {RunState.PLANNED, RunState.RUNNING}
    facts = RunFacts(
        state=run.state, state_text=state_text, is_automatic=run.kind == RunKind.AUTOMATIC,
        is_selected=run.selected is not None, is_empty=run.selected == 0, approval=_open_approval(run),
        stop=stops.describe_stop(run.dlq) if moves else "", aws=aws_redrives.describe(moved) if moved else "",
        missing=tuple(automatic_redrive.missing_processes(cure=False)) if moves else (), **_of(run, observed),
    )  # fmt: skip
    return waiting_reason(facts, now)


def targets_of(run: Run, more: Collection[int] = ()) -> set[int]:
    """Return the ids of the targets to which the sources of a run's DLQ lead, and the ids `more`."""
    return {*run.dlq.sources.values_list("target_id", flat=True), *more}


def allowed_rate(run: Run, breakers: Collection[BreakerStatus]) -> float | None:
    """Return how many messages a second a run may send now, to all its targets; None: no limit.

    `breakers`: the circuit breakers of its targets.
    """
    found = [_allowed(run, breaker) for breaker in breakers if breaker.rate_class is None]
    return None if not found or None in found else sum(filter(None, found))


def _allowed(run: Run, breaker: BreakerStatus) -> float | None:
    own = None if run.rate is None or breaker.state != BreakerState.CLOSED else run.rate * breaker.ramp
    return min((rate for rate in (breaker.allowed, own) if rate is not None), default=None)


def read_breakers(targets: Collection[int]) -> list[BreakerStatus]:
    """Return the circuit breakers of these targets."""
    return breaker_status.breaker_statuses(targets)


def _open_approval(run: Run) -> int | None:
    """Return the id of an open request to start or resume the run; None: there is none."""
    found = Approval.objects.filter(state=ApprovalState.OPEN, arguments__run=run.pk, dlq_ids__contains=[run.dlq_id])
    return found.order_by("-pk").values_list("pk", flat=True).first()


def _of(run: Run, observed: Observed | None) -> dict[str, Any]:
    if observed is None or run.state != RunState.RUNNING:
        return {}
    tally = observed.tally
    return {
        "lanes": tuple(_group(lanes) for lanes in observed.lanes), "breakers": tuple(_not_closed(observed.breakers)),
        "failing_checks": tuple(_failing_checks({breaker.target_id for breaker in observed.breakers})),
        "captured": tally.captured, "awaiting": tally.awaiting, "held": tally.held, "open": tally.open,
        "awaited": observed.awaited, "wave": observed.wave, "measured": observed.measured, "allowed": observed.allowed,
    }  # fmt: skip


def _group(lanes: LaneCount) -> LaneGroup:
    is_leased, is_ready = lanes.phase == LanePhase.LEASED, lanes.phase == LanePhase.READY
    return LaneGroup(
        n=lanes.n, why=lane_counts.describe_first(lanes), is_leased=is_leased,
        moves=is_leased or (is_ready and lanes.due and not (lanes.is_barred or lanes.why == WAITS_FOR_CAUSE)),
        is_barred=lanes.is_barred, is_held=lanes.phase == LanePhase.HELD,
        due_at=lanes.due_at if is_ready else None, ahead=lanes.ahead, ahead_state=lanes.ahead_state,
    )  # fmt: skip


def _not_closed(breakers: Collection[BreakerStatus]) -> Iterator[NotClosedBreaker]:
    for breaker in breakers:
        if breaker.state != BreakerState.CLOSED:
            yield NotClosedBreaker(breaker.name, breaker.state == BreakerState.OPEN, breaker.retry_at)


def _failing_checks(targets: Collection[int]) -> Iterator[str]:
    checks = [check for check in health_checks.checks_of(sorted(targets)) if not check.is_passing]
    names = {target.pk: resource_name(target.arn) for target in Target.objects.filter(pk__in=targets)} if checks else {}
    for check in checks:
        yield f"{names[check.target_id]}: {check.detail or f'its check {check.kind} has no result yet'}"
