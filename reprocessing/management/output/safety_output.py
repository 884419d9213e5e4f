"""Show the state of circuit breakers and health checks, as text and as JSON."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from reprocessing.management.console import format_time
from reprocessing.models.safety import BreakerState, HealthStatus
from reprocessing.store.safety import health_checks
from reprocessing.store.safety.breaker_status import BreakerStatus

Json = dict[str, Any]


def breaker_in_json(one: BreakerStatus, now: datetime) -> Json:
    """Return a circuit breaker as JSON.

    `rate` is the rate limit, and `allowed_rate` the rate that the ramp-up allows now. Canaries are sent in addition.
    Both rates are in messages/s; null means no limit.
    """
    return {
        "name": one.name,
        "rate_class": one.rate_class,
        "state": one.state,
        "since": one.since,
        "why": one.why or None,
        "next_canary_at": one.next_canary(now),
        "rate": one.rate,
        "allowed_rate": one.allowed,
        "ramp": one.ramp,
        "ramp_reason": _ramp_why(one),
    }


def breaker_text(breaker: Json, now: datetime) -> str:
    """Return a text with a circuit breaker's state, since when and why, and the time of the next canary.

    `breaker` is the result of `breaker_in_json`.
    """
    state = {BreakerState.OPEN: "OPEN", BreakerState.HALF_OPEN: "half open"}.get(breaker["state"], breaker["state"])
    why = f": {breaker['why']}" if breaker["why"] else ""
    at = breaker["next_canary_at"]
    following = "" if at is None else f"; next canary {'now' if at <= now else f'at {format_time(at)}'}"
    if breaker["state"] == BreakerState.HALF_OPEN and at and at > now:
        following = "; a canary was sent"
    return f"{state} since {format_time(breaker['since'])}{why}{following}"


def rate_text(breaker: Json) -> str:
    """Return a text with the rate allowed now, and the reason. `breaker` is the result of `breaker_in_json`."""
    rate, most = breaker["allowed_rate"], breaker["rate"]
    if breaker["state"] != BreakerState.CLOSED:
        return "only canaries are sent"
    if rate is None:
        return "no rate limit"
    of = f" of {most:g}" if most is not None and rate < most else ""
    return f"{rate:g}{of} messages/s allowed now ({breaker['ramp_reason']})"


def check_in_json(one: health_checks.CheckStatus) -> Json:
    """Return a health check as JSON. If its last result is healthy and recent, `lets_go` is true: sends are allowed."""
    return {
        "check": f"{one.kind} {one.subject}".strip(),
        "ceiling": one.ceiling,
        "verdict": one.verdict,
        "detail": one.detail or None,
        "checked_at": one.checked_at,
        "age_seconds": one.age,
        "lets_go": one.is_passing,
    }


def check_text(check: Json) -> str:
    """Return a text with a health check's last result, its age, and whether it prevents sends.

    `check` is the result of `check_in_json`.
    """
    age = "never run" if check["age_seconds"] is None else f"{check['age_seconds']:.0f} s ago"
    detail = f": {check['detail']}" if check["detail"] else ""
    old = check["verdict"] == HealthStatus.HEALTHY and not check["lets_go"]
    consequence = "; too old: it runs again as soon as messages wait" if old else ""
    if not check["lets_go"] and not old:
        consequence = "; nothing is sent until it is healthy"
    return f"{check['check']} is {check['verdict']} ({age}){detail}{consequence}"


def _ramp_why(one: BreakerStatus) -> str:
    return one.ramp_reason or ("full rate" if one.ramp == 1 else "start of the ramp-up")
