"""Find what would keep a plan's messages from being sent now: stops, AWS's redrive, breakers, health checks."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime
from typing import Final

from reprocessing.domain.message.arn import resource_name
from reprocessing.domain.runs.forecast import time_in_words
from reprocessing.models import BreakerState, DeadLetterQueue, Target
from reprocessing.models.safety import HealthStatus
from reprocessing.store.aws import aws_redrives
from reprocessing.store.ordering import placement
from reprocessing.store.routing import rules
from reprocessing.store.safety import breaker_status, health_checks, stops
from reprocessing.store.safety.breaker_status import BreakerStatus

#: What a text of `undecryptable_messages` says.
UNDECRYPTABLE: Final = "cannot be decrypted now, and cannot be sent."


def plan_obstacles(dlq: DeadLetterQueue, targets: Collection[int], now: datetime) -> list[str]:
    """Return sentences about what keeps messages of the DLQ from being sent to these targets now; empty: nothing.

    Circuit breakers of rate classes are left out, because the plan may have no message of the rate class. `targets`:
    ids of the targets. If the plan has no messages, it is empty; then the targets of the DLQ's source queues count.
    """
    targets = targets or set(dlq.sources.values_list("target_id", flat=True))
    stop, moved = stops.describe_stop(dlq), aws_redrives.current(dlq.pk)
    found = [stop] if stop else []
    found += [aws_redrives.describe(moved)] if moved else []
    breakers = [one for one in breaker_status.breaker_statuses(targets) if one.rate_class is None]
    found += filter(None, (_of_breaker(breaker, now) for breaker in breakers))
    found += filter(None, [undecryptable_messages(dlq)])
    return [*found, *_failed_checks(targets)]


def rules_notice(dlq: DeadLetterQueue) -> list[str]:
    """Return a phrase about the rules in force for the DLQ, if there are any: plans do not evaluate rules."""
    n = sum(bound.dlq_id in {None, dlq.pk} for bound in rules.in_force().rules)
    if not n:
        return []
    decide = "1 enabled rule decides" if n == 1 else f"{n:,} enabled rules decide"
    what = "some may be held, delayed, sent elsewhere, quarantined or discarded"
    return [f"{decide} only when messages are sent: {what} (manage.py test_rules shows a preview)"]


def undecryptable_messages(dlq: DeadLetterQueue) -> str:
    """Return a text about captured messages of the DLQ that cannot be decrypted now; empty: there are none."""
    left = placement.count_undecryptable(dlq.pk)
    if not left.n:
        return ""
    some = "1 captured message" if left.n == 1 else f"{left.n:,} captured messages"
    more = f" {left.untried:,} more were not tried yet." if left.untried else ""
    return f"{some} of {dlq.name} {UNDECRYPTABLE}{more} {left.why}"


def _of_breaker(breaker: BreakerStatus, now: datetime) -> str:
    why = f" ({breaker.why})" if breaker.why else ""
    then = "one message at a time is sent as a test, a canary, until enough of them succeed."
    match breaker.state:
        case BreakerState.CLOSED:
            return ""
        case BreakerState.OPEN if breaker.retry_at and breaker.retry_at > now:
            until = f"until {time_in_words(breaker.retry_at, now)}"
            return f"The circuit breaker of {breaker.name} is open {until}{why}: nothing is sent before. Then {then}"
        case BreakerState.OPEN:
            return f"The circuit breaker of {breaker.name} is open{why}, and its cooldown is over: {then}"
        case _:
            return f"The circuit breaker of {breaker.name} is half open{why}: {then}"


def _failed_checks(targets: Collection[int]) -> Iterator[str]:
    """Yield a sentence for each health check that failed when it last ran.

    Health checks run only while messages wait. So a check that never ran, or whose result is old, is no obstacle.
    """
    checks = [check for check in health_checks.checks_of(sorted(targets)) if _failed(check)]
    names = {target.pk: resource_name(target.arn) for target in Target.objects.filter(pk__in=targets)} if checks else {}
    for check in checks:
        ran = f", {check.checked_at:%Y-%m-%d %H:%M:%S} UTC" if check.checked_at else ""
        said = f": {check.detail}" if check.detail else ""
        yield (
            f"The health check {check.kind} of {names[check.target_id]} did not pass when it last ran{ran}{said}. "
            "Nothing is sent until the check passes."
        )


def _failed(check: health_checks.CheckStatus) -> bool:
    return check.counts and check.verdict != HealthStatus.HEALTHY
