"""Circuit breakers and health checks, as text and as JSON."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from reprocessing.management.console import when
from reprocessing.models.safety import BreakerState, Health
from reprocessing.store.safety import health_checks
from reprocessing.store.safety.breaker_status import Bearing

Told = dict[str, Any]


def told(one: Bearing, now: datetime) -> Told:
    """Return a breaker as JSON. `rate` and `allowed_rate` (without canaries) are messages/s; null: no limit."""
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
        "ramp_why": _ramp_why(one),
    }


def standing(breaker: Told, now: datetime) -> str:
    """Return the state, its time and reason, and the next canary."""
    state = {BreakerState.OPEN: "OPEN", BreakerState.HALF_OPEN: "half open"}.get(breaker["state"], breaker["state"])
    why = f": {breaker['why']}" if breaker["why"] else ""
    at = breaker["next_canary_at"]
    following = "" if at is None else f"; next canary {'now' if at <= now else f'at {when(at)}'}"
    if breaker["state"] == BreakerState.HALF_OPEN and at and at > now:
        following = "; a canary was sent"
    return f"{state} since {when(breaker['since'])}{why}{following}"


def allowed(breaker: Told) -> str:
    """Return the rate that is allowed now, and why."""
    rate, most = breaker["allowed_rate"], breaker["rate"]
    if breaker["state"] != BreakerState.CLOSED:
        return "only canaries are sent"
    if rate is None:
        return "no rate limit"
    of = f" of {most:g}" if most is not None and rate < most else ""
    return f"{rate:g}{of} messages/s allowed now ({breaker['ramp_why']})"


def checked(one: health_checks.Told) -> Told:
    """Return a health check as JSON. `lets_go`: it is healthy, and recent."""
    return {
        "check": f"{one.kind} {one.subject}".strip(),
        "ceiling": one.ceiling,
        "verdict": one.verdict,
        "detail": one.detail or None,
        "checked_at": one.checked_at,
        "age_seconds": one.age,
        "lets_go": one.lets_go,
    }


def health(check: Told) -> str:
    """Return the result, its age, and whether messages are sent."""
    age = "never run" if check["age_seconds"] is None else f"{check['age_seconds']:.0f} s ago"
    detail = f": {check['detail']}" if check["detail"] else ""
    old = check["verdict"] == Health.HEALTHY and not check["lets_go"]
    shut = "; too old: it runs again as soon as messages wait" if old else ""
    if not check["lets_go"] and not old:
        shut = "; nothing is sent until it is healthy"
    return f"{check['check']} is {check['verdict']} ({age}){detail}{shut}"


def _ramp_why(one: Bearing) -> str:
    return one.ramp_why or ("full rate" if one.ramp == 1 else "start of the ramp-up")
