"""Check Redis, which holds the send rates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from reprocessing.domain.errors import RateLimitUnavailable
from reprocessing.domain.maintenance.findings import (
    DoctorFinding,
    error_finding,
    ok_finding,
    unknown_finding,
    warning_finding,
)
from reprocessing.gateways.redis.send_rate import Rates

_NAME: Final = "Redis"


def findings(of: Rates) -> Iterator[DoctorFinding]:
    """Yield findings that say whether Redis answers, and whether it deletes keys when its memory is full."""
    try:
        policy = of.eviction_policy()
    except RateLimitUnavailable as error:
        why = "While it is gone, nothing is sent to a target that has a rate."
        yield error_finding(
            _NAME, str(error), why, "Check REDIS_URL, and that the server runs: redis-cli -u $REDIS_URL ping"
        )
        return
    if policy is None:
        yield unknown_finding(
            _NAME, "It answers, but does not return its maxmemory-policy.", cure="Set it to noeviction."
        )
    elif policy:
        why = "When its memory is full, it deletes send rates: a target without its rate waits for new tokens."
        cure = "redis-cli -u $REDIS_URL config set maxmemory-policy noeviction, and in its configuration."
        yield warning_finding(_NAME, f"Its maxmemory-policy is {policy}.", why, cure)
    else:
        yield ok_finding(_NAME, "it answers, and evicts no keys when its memory is full.")
