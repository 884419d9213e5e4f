"""Look at the health of targets: every check that is due, side by side, and what was found written down."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Final

from reprocessing.conf import Conf
from reprocessing.domain.errors import QueueIsOutOfReach
from reprocessing.domain.safety.health_check import Finding, Healthy, Unhealthy, Unknown, within
from reprocessing.gateways import http
from reprocessing.gateways.aws_services import cloudwatch_alarms
from reprocessing.gateways.sqs import QueueAddress, depth, describe
from reprocessing.models.safety import CheckKind
from reprocessing.store.safety import health_checks
from reprocessing.store.safety.health_checks import Check

logger = logging.getLogger(__name__)

Found = list[tuple[Check, Finding]]

#: Checks of one round, and how many of them are asked at the same time: each waits for a few seconds at the most.
GROUP: Final = 64
_THREADS: Final = 32


def targets(*, conf: Conf, only: Sequence[int] | None = None, dlq: int | None = None) -> int:
    """Perform the checks that are due, of targets that letters wait for; how many. Whoever fails to look says so.

    Args:
        conf: of it the hosts that may be asked.
        only: all checks of these targets instead, due or not.
        dlq: those that are due, of targets alone that letters of this dlq wait for, by its id.
    """
    if only is not None:
        return _round(health_checks.claim_all(only), conf)
    performed = 0
    while claimed := health_checks.claim(limit=GROUP, dlq=dlq):
        performed += _round(claimed, conf)
        if len(claimed) < GROUP:
            break
    return performed


def look(claimed: Sequence[Check], *, conf: Conf) -> Found:
    """What these checks find now; no table is touched."""
    jobs = list(_jobs(claimed, conf))
    if not jobs:
        return []
    with ThreadPoolExecutor(min(_THREADS, len(jobs)), thread_name_prefix="check") as pool:
        return [one for found in pool.map(_safely, jobs) for one in found]


def _round(claimed: Sequence[Check], conf: Conf) -> int:
    health_checks.record(look(claimed, conf=conf))
    return len(claimed)


@dataclass(frozen=True, slots=True)
class _Job:
    """Checks that are asked together, and how."""

    about: list[Check]
    ask: Callable[[list[Check]], list[Finding]]


def _jobs(claimed: Sequence[Check], conf: Conf) -> Iterator[_Job]:
    """Alarms and ages are asked for a region at a time, everything else by itself."""
    for (kind, _), some in groupby(sorted(claimed, key=_kind_and_region), key=_kind_and_region):
        match CheckKind(kind):
            case CheckKind.ALARM:
                yield _Job(list(some), _alarms)
            case CheckKind.AGE:
                yield _Job(list(some), _ages)
            case CheckKind.HTTP:
                yield from (_Job([one], partial(_http, conf)) for one in some)
            case CheckKind.DEPTH:
                yield from (_Job([one], _depth) for one in some)
            case CheckKind.POLICY:
                yield from (_Job([one], _policy) for one in some)


def _kind_and_region(one: Check) -> tuple[str, str]:
    return one.kind, one.region


def _safely(job: _Job) -> Found:
    try:
        return list(zip(job.about, job.ask(job.about), strict=True))
    except QueueIsOutOfReach as error:
        why = str(error)
    except Exception as error:  # one check's fault must leave the others their verdicts
        logger.exception("a health check failed")
        why = f"the check itself failed ({type(error).__name__}); the log of this process says where"
    return [(one, Unknown(why)) for one in job.about]


def _alarms(some: list[Check]) -> list[Finding]:
    found = cloudwatch_alarms.alarms(some[0].region, [one.subject for one in some])
    return [found[one.subject] for one in some]


def _ages(some: list[Check]) -> list[Finding]:
    found = cloudwatch_alarms.ages(
        some[0].region, [_queue(one).name for one in some], now=min(one.began for one in some)
    )
    return [_age(one, found[_queue(one).name]) for one in some]


def _age(one: Check, said: float | Unknown) -> Finding:
    if said is cloudwatch_alarms.NOBODY_USES_IT and depth(_queue(one)).total == 0:
        return Healthy("nobody uses it, and it is empty")
    if isinstance(said, Unknown):
        return said
    return within("the age of its oldest message", said, _ceiling(one), "seconds")


def _http(conf: Conf, some: list[Check]) -> list[Finding]:
    return [http.check(one.subject, allowed=conf.outbound_hosts, expected=one.expected_status) for one in some]


def _depth(some: list[Check]) -> list[Finding]:
    return [within("its depth", depth(_queue(one)).total, _ceiling(one), "messages") for one in some]


def _policy(some: list[Check]) -> list[Finding]:
    """Celery workers delete what they reject from a queue that has none (kombu 5.7)."""
    lost = Unhealthy("its queue has no redrive policy, so its workers delete what they reject; give it one again")
    return [Healthy("a redrive policy") if describe(_queue(one)).redrive else lost for one in some]


def _queue(one: Check) -> QueueAddress:
    return QueueAddress(url=one.url, region=one.region, role=one.role_arn)


def _ceiling(one: Check) -> float:
    return one.ceiling if one.ceiling is not None else 0.0
