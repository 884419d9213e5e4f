"""Return the status of DLQs and of messages as JSON, which redrive_status prints or turns into text."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from datetime import datetime
from typing import Any

from reprocessing import conf
from reprocessing.domain.aws.pricing import IdleLoad
from reprocessing.domain.lifecycle import FINISHED_STATES, LetterState
from reprocessing.domain.ordering.placement import read_sort_key
from reprocessing.management.output import rule_output, safety_output
from reprocessing.models import Letter
from reprocessing.models.dlq import Mode
from reprocessing.store.dlqs import automatic_redrive, dlq_status, schedule
from reprocessing.store.dlqs.dlq_status import DlqStatus, OldestLetter
from reprocessing.store.maintenance import counters
from reprocessing.store.maintenance.counters import CountByState
from reprocessing.store.ordering import lane_counts
from reprocessing.store.ordering import lanes as lanes_of
from reprocessing.store.ordering.lane_counts import LaneCount
from reprocessing.store.outcomes import delivery_status, pending_outcomes
from reprocessing.store.outcomes.delivery_status import StatusCount
from reprocessing.store.outcomes.pending_outcomes import PendingOutcome
from reprocessing.store.outcomes.recent_letters import MAX_OF_PART
from reprocessing.store.routing import rules
from reprocessing.store.runs import open_runs, run_cost
from reprocessing.store.runs.open_runs import OpenRun
from reprocessing.store.safety import breaker_status, failed_answers, health_checks, stops
from reprocessing.store.safety.breaker_status import BreakerStatus

Json = dict[str, Any]
_PRESUMED = "presumed"
_ENDED = frozenset(FINISHED_STATES) - {LetterState.PARKED}


def status(key: int | None = None) -> Json:
    """Return as JSON the status of the DLQ with this primary key or, if `key` is None, of all DLQs."""
    now = lanes_of.database_now()
    halt = stops.stop_of(None)
    letters, lanes, oldest = counters.counts_by_state(key), lane_counts.lane_counts(key), dlq_status.oldest_letters(key)
    lag, expiry = conf.current().count_lag.total_seconds(), dlq_status.expiries(key)
    evidence, runs = pending_outcomes.of_targets(key, count_lag=lag), open_runs.open_runs(key)
    known = delivery_status.count_by_status(key)
    brakes = breaker_status.breaker_statuses([one.target_id for one in evidence])
    health = health_checks.checks_of([one.target_id for one in evidence])
    watches, failing = dlq_status.dlq_statuses(key), failed_answers.of_dlqs(key)
    return {
        "now": now,
        "stopped": halt and _stop(halt.since, halt.by, halt.reason),
        "held_after_restore": halt is not None and halt.restored,
        "polling": _polling() if key is None else None,
        "missing": automatic_redrive.missing_processes() if any(one.mode == Mode.AUTOMATIC for one in watches) else [],
        "rules": [rule_output.rule_in_json(one) for one in rules.rule_statuses(key)],
        "dlqs": [
            {
                **_of_dlq(watch),
                **_of_letters([one for one in letters if one.dlq_id == watch.id]),
                **_age([one for one in oldest if one.dlq_id == watch.id], now),
                **_evidence(watch.id, known, letters),
                **_until(expiry.get(watch.id), now),
                **_of_lanes([one for one in lanes if one.dlq_id == watch.id]),
                "failing": asdict(failing[watch.id]) if watch.id in failing else None,
                "targets": [_of_target(one, brakes, health, now) for one in evidence if one.dlq_id == watch.id],
                "runs": [_of_run(one) for one in runs if one.dlq_id == watch.id],
            }
            for watch in watches
        ],
    }


def _polling() -> Json:
    """Return the AWS requests per second while no messages arrive, and what they cost per day.

    These are the requests of scheduled polls of all DLQs, of beat, and of one worker.
    """
    polling = IdleLoad(schedule.polls_per_second())
    each = conf.current().prices.of(fifo=False)
    return {"requests_a_second": polling.requests, "a_day": asdict(polling.cost_of_day(each=each))}


def letter_in_json(one: Letter) -> Json:
    """Return a message and its newest 20 consumer reports as JSON. Texts of reports are left out."""
    found = delivery_status.status_of(one)
    return {
        "message_id": one.message_id,
        "redrive_id": str(one.public_id),
        "dlq": one.dlq.name,
        "state": one.state,
        "sequence": read_sort_key(one.sequence) if one.sequence else None,
        "worked": found.worked,
        "how": found.how.value,
        "since": found.since,
        "sentence": found.sentence,
        "attempts": one.attempts,
        "said": [
            {"verdict": said.verdict, "at": said.happened_at, "by": said.reporter, "type": said.type,
             "fingerprint": said.fingerprint}
            for said in delivery_status.reasons_of(one, most=20)
        ],
    }  # fmt: skip


def _stop(since: datetime, by: str, reason: str) -> Json:
    return {"since": since, "by": by, "reason": reason}


def _of_dlq(watch: DlqStatus) -> Json:
    return {
        "name": watch.name,
        "mode": watch.mode,
        "ordering_key": watch.ordering_key,
        "schedule": watch.every or watch.crontab or None,
        "next_poll_at": watch.next_poll_at,
        "stopped": watch.stopped_at and _stop(watch.stopped_at, watch.stopped_by, watch.stop_reason),
        "depth": {"visible": watch.depth_visible, "in_flight": watch.depth_in_flight, "at": watch.depth_at},
        "copies": {"held": watch.held, "to_delete": watch.to_delete},
        "capture": {
            "last_clean": watch.drained_through,
            "under_way_until": watch.captured_until,
            "orphans_hidden_until": watch.orphans_hidden_until,
        },
        "native": watch.native or None,
        "last_error": watch.last_error or None,
    }


def _of_letters(found: list[CountByState]) -> Json:
    counts = dict.fromkeys([*(state.value for state in LetterState), _PRESUMED], 0)
    for one in found:
        counts[_PRESUMED if one.presumed else one.state] += one.n
    return {
        "messages": counts,
        "parked": {one.reason: one.n for one in found if one.state == LetterState.PARKED},
        "unfinished": sum(one.n for one in found if one.state not in FINISHED_STATES),
    }


def _evidence(dlq: int, known: list[StatusCount], letters: list[CountByState]) -> Json:
    """Return how many recent messages of a DLQ have each delivery status, and whether it may have more messages."""
    parts = Counter[str]()
    for one in letters:
        if one.dlq_id == dlq:
            parts["ended" if one.state in _ENDED else one.state] += one.n
    is_part = any(n > MAX_OF_PART for part, n in parts.items() if part != LetterState.CAPTURED)
    return {"known": {one.how: one.n for one in known if one.dlq_id == dlq}, "known_is_part": is_part}


def _age(found: list[OldestLetter], now: datetime) -> Json:
    oldest = min((one.first_sent_at for one in found if one.state not in FINISHED_STATES), default=None)
    return {"oldest": oldest, "oldest_age_seconds": oldest and (now - oldest).total_seconds()}


def _until(expiry: datetime | None, now: datetime) -> Json:
    return {"expires": expiry, "expires_in_seconds": expiry and (expiry - now).total_seconds()}


def _of_lanes(found: list[LaneCount]) -> Json:
    phases: dict[str, int] = {}
    for one in found:
        phases[one.phase] = phases.get(one.phase, 0) + one.n
    return {"lanes": phases, "waiting": _waiting([one for one in found if one.phase != "leased"])}


def _waiting(found: list[LaneCount]) -> list[Json]:
    """Return the reasons why key queues wait, each with the number of key queues.

    `due_at` is the earliest time at which one of these key queues may send again, or null if no time is known.
    """
    reasons: dict[str, Json] = {}
    for one in found:
        why = lane_counts.describe_lanes(one)
        reason = reasons.setdefault(why, {"lanes": 0, "why": why, "due_at": one.due_at})
        reason["lanes"] += one.n
        reason["due_at"] = min(filter(None, (reason["due_at"], one.due_at)), default=None)
    return list(reasons.values())


def _of_target(
    one: PendingOutcome, brakes: list[BreakerStatus], health: list[health_checks.CheckStatus], now: datetime
) -> Json:
    return {
        "source": one.source,
        "target": one.target,
        "kind": one.kind,
        "confirmed_fanout": one.confirmed_fanout,
        "outcome": one.proof,
        "advance": one.advance,
        "rate": one.rate,
        "burst": one.burst,
        "window": one.window,
        "watched_by": one.watched_by,
        "unsettled": one.unsettled,
        "waits_for": pending_outcomes.describe(one) or None,
        "breakers": [safety_output.breaker_in_json(brake, now) for brake in brakes if brake.target_id == one.target_id],
        "checks": [safety_output.check_in_json(check) for check in health if check.target_id == one.target_id],
    }


def _of_run(one: OpenRun) -> Json:
    asked = run_cost.cost_of_run(one.id, conf.current().prices, most=run_cost.MAX_COUNTED)
    return {
        "name": one.name,
        "kind": one.kind,
        "state": one.state,
        "asked_by": one.asked_by,
        "started_at": one.started_at,
        "unfinished": one.unfinished,
        "why": one.why or None,
        "aws_requests": asked and asdict(asked),
        "wave": one.wave and {"no": one.wave, "size": one.wave_size, "sent": one.sent},
    }
