"""Run health checks in parallel when it is time for them, and record their results."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import groupby
from typing import Final

from reprocessing.conf import Conf
from reprocessing.domain.errors import QueueUnreachable
from reprocessing.domain.safety.health_check import HealthResult, HealthUnknown, Healthy, Unhealthy, within_ceiling
from reprocessing.gateways import http
from reprocessing.gateways.aws_services import cloudwatch_alarms
from reprocessing.gateways.sqs import QueueAddress, depth, describe
from reprocessing.models.safety import CheckKind
from reprocessing.store.safety import health_checks
from reprocessing.store.safety.health_checks import ClaimedCheck

logger = logging.getLogger(__name__)

Found = list[tuple[ClaimedCheck, HealthResult]]
_Job = tuple[list[ClaimedCheck], Callable[[list[ClaimedCheck]], list[HealthResult]]]

#: Most checks of one round, and most threads that run checks.
ROUND_SIZE: Final = 64
_THREADS: Final = 32


def run_due(*, conf: Conf, only: Sequence[int] | None = None, dlq: int | None = None) -> int:
    """Run the due health checks of targets that letters wait for; return how many checks were run.

    `dlq`: only targets of this DLQ's letters; None: of all DLQs. `only`: ids of targets. Then all checks of these
    targets are run, even if they are not due, and no other checks. `conf`: has the allowed hosts.
    """
    if only is not None:
        return _round(health_checks.claim_all(only), conf)
    performed = 0
    while claimed := health_checks.claim_due(limit=ROUND_SIZE, dlq=dlq):
        performed += _round(claimed, conf)
        if len(claimed) < ROUND_SIZE:
            break
    return performed


def run_checks(claimed: Sequence[ClaimedCheck], *, conf: Conf) -> Found:
    """Run these checks in parallel, and return each check with its result. The database is not used."""
    jobs = list(_jobs(claimed, conf))
    if not jobs:
        return []
    with ThreadPoolExecutor(min(_THREADS, len(jobs)), thread_name_prefix="check") as pool:
        return [pair for found in pool.map(_safely, jobs) for pair in found]


def _round(claimed: Sequence[ClaimedCheck], conf: Conf) -> int:
    health_checks.record_results(run_checks(claimed, conf=conf))
    return len(claimed)


def _jobs(claimed: Sequence[ClaimedCheck], conf: Conf) -> Iterator[_Job]:
    """Yield groups of checks that need only one request.

    Such a group has all alarm checks or all queue age checks of a region, or a single other check.
    """
    for (kind, _), some in groupby(sorted(claimed, key=_kind_and_region), key=_kind_and_region):
        match CheckKind(kind):
            case CheckKind.ALARM:
                yield list(some), _alarms
            case CheckKind.AGE:
                yield list(some), _ages
            case CheckKind.HTTP:
                yield from (([check], partial(_http, conf)) for check in some)
            case CheckKind.DEPTH:
                yield from (([check], _depth) for check in some)
            case CheckKind.POLICY:
                yield from (([check], _policy) for check in some)


def _kind_and_region(check: ClaimedCheck) -> tuple[str, str]:
    return check.kind, check.region


def _safely(job: _Job) -> Found:
    checks, ask = job
    try:
        return list(zip(checks, ask(checks), strict=True))
    except QueueUnreachable as error:
        why = str(error)
    except Exception as error:  # an error of one job; the others are recorded
        logger.exception("a health check failed")
        why = f"the check itself failed ({type(error).__name__}); the log of this process says where"
    return [(check, HealthUnknown(why)) for check in checks]


def _alarms(some: list[ClaimedCheck]) -> list[HealthResult]:
    found = cloudwatch_alarms.alarm_states(some[0].region, [check.subject for check in some])
    return [found[check.subject] for check in some]


def _ages(some: list[ClaimedCheck]) -> list[HealthResult]:
    found = cloudwatch_alarms.oldest_message_ages(
        some[0].region, [_queue(check).name for check in some], now=min(check.began for check in some)
    )
    return [_age(check, found[_queue(check).name]) for check in some]


def _age(check: ClaimedCheck, said: float | HealthUnknown) -> HealthResult:
    if said is cloudwatch_alarms.NOBODY_USES_IT and depth(_queue(check)).total == 0:
        return Healthy("nobody uses it, and it is empty")
    if isinstance(said, HealthUnknown):
        return said
    return within_ceiling("the age of its oldest message", said, _ceiling(check), "seconds")


def _http(conf: Conf, some: list[ClaimedCheck]) -> list[HealthResult]:
    return [http.check(check.subject, allowed=conf.outbound_hosts, expected=check.expected_status) for check in some]


def _depth(some: list[ClaimedCheck]) -> list[HealthResult]:
    return [within_ceiling("its depth", depth(_queue(check)).total, _ceiling(check), "messages") for check in some]


def _policy(some: list[ClaimedCheck]) -> list[HealthResult]:
    """Return `Unhealthy` for queues of Celery workers without a redrive policy.

    Celery workers (kombu 5.7) delete the messages that they reject, so failed messages would be lost.
    """
    lost = Unhealthy("its queue has no redrive policy, so its workers delete what they reject; give it one")
    return [Healthy("a redrive policy") if describe(_queue(check)).redrive else lost for check in some]


def _queue(check: ClaimedCheck) -> QueueAddress:
    return QueueAddress(url=check.url, region=check.region, role=check.role_arn)


def _ceiling(check: ClaimedCheck) -> float:
    return check.ceiling if check.ceiling is not None else 0.0
