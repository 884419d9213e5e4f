"""What breakers do and health checks say now, told: shared by the commands that show them, or move them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from reprocessing.management.console import when
from reprocessing.models.safety import BreakerState, Health
from reprocessing.store.safety import health_checks
from reprocessing.store.safety.breaker_status import Bearing

Told = dict[str, Any]


def told(one: Bearing, now: datetime) -> Told:
    """All of it for a program. `allowed_rate`, apart from canaries, and `rate` are letters a second; null: no limit."""
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
    """For people: its state, since when and why, and when the next canary may go."""
    state = {BreakerState.OPEN: "OPEN", BreakerState.HALF_OPEN: "half open"}.get(breaker["state"], breaker["state"])
    why = f": {breaker['why']}" if breaker["why"] else ""
    at = breaker["next_canary_at"]
    following = "" if at is None else f"; the next canary may go {'now' if at <= now else f'at {when(at)}'}"
    if breaker["state"] == BreakerState.HALF_OPEN and at and at > now:
        following = "; a canary is out"
    return f"{state} since {when(breaker['since'])}{why}{following}"


def allowed(breaker: Told) -> str:
    """For people: how much of the rate may go now, and why."""
    rate, most = breaker["allowed_rate"], breaker["rate"]
    if breaker["state"] != BreakerState.CLOSED:
        return "nothing but canaries goes"
    if rate is None:
        return "no limit of rate"
    of = f" of {most:g}" if most is not None and rate < most else ""
    return f"{rate:g}{of} letters/s allowed now ({breaker['ramp_why']})"


def checked(one: health_checks.Told) -> Told:
    """A health check for a program. `lets_go`: what was found is well, and fresh."""
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
    """For people: what was found, how long ago, and that nothing goes while it is not well."""
    age = "never looked at" if check["age_seconds"] is None else f"{check['age_seconds']:.0f} s ago"
    detail = f": {check['detail']}" if check["detail"] else ""
    old = check["verdict"] == Health.HEALTHY and not check["lets_go"]
    shut = "; too old to count: it is looked at again as soon as letters wait" if old else ""
    if not check["lets_go"] and not old:
        shut = "; nothing goes until it is healthy"
    return f"{check['check']} is {check['verdict']} ({age}){detail}{shut}"


def _ramp_why(one: Bearing) -> str:
    return one.ramp_why or ("the whole rate" if one.ramp == 1 else "from its start: nothing was settled yet")
