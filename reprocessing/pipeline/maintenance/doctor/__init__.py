"""Check everything that the service depends on (redrive_doctor). Nothing is changed, and no message is received."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import chain
from typing import Final

from django.db import DatabaseError, InterfaceError, connection

from reprocessing.conf import Conf
from reprocessing.domain.errors import RedriveError
from reprocessing.domain.maintenance.findings import DoctorFinding, error_finding, ok_finding, unknown_finding
from reprocessing.gateways.redis.send_rate import Rates
from reprocessing.models import DeadLetterQueue
from reprocessing.pipeline.maintenance.doctor import (
    api_tokens,
    beat_and_workers,
    clocks,
    consumers,
    database,
    dlqs,
    managed_objects,
    notifications,
    own_queues,
    payloads,
    redis,
    stalled_lanes,
)
from reprocessing.store.maintenance.database_checks import statement_timeout

__all__ = ["CheckContext", "CheckResult", "run_all_checks", "run_dlq_checks", "run_service_checks"]

_STATEMENT_TIMEOUT: Final = 15.0  #: most seconds for one statement of PostgreSQL
_ALIVE, _CONSUMERS = "beat and workers", "consumers"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckContext:
    """Parameters of the checks.

    Attributes:
        names: names of the DLQs to check; empty: all.
        control: name of the queue to which beat sends the task `tick`.
        conf: the settings.
        rates: the connection to Redis, which has the rate limits.
        now: returns this machine's time.
        ended_by: exceptions that end all checks, such as those of time limits. Other exceptions become findings.
    """

    names: tuple[str, ...] = ()
    control: str
    conf: Conf
    rates: Rates
    now: Callable[[], datetime]
    ended_by: tuple[type[Exception], ...] = ()


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one check: the title of the check, and one or more findings."""

    title: str
    findings: tuple[DoctorFinding, ...]


@dataclass(frozen=True, slots=True)
class _Step:
    title: str
    look: Callable[[], Iterable[DoctorFinding]]
    asks_postgres: bool = True


def run_all_checks(of: CheckContext, begins: Callable[[str], object]) -> Iterator[CheckResult]:
    """Run all checks, and yield their results. `begins`: called before each check, with the title of the check.

    A check that fails does not stop the others.
    """
    for step in chain(_of_service(of), _of_dlqs(of)):
        begins(step.title)
        yield _look(step, of)


def run_service_checks(of: CheckContext) -> Iterator[CheckResult]:
    """Run the checks of the service itself, and yield the results.

    Beat and workers are left out: a thread in each worker and beat (`watchdog.py`) checks them.
    """
    yield from (_look(step, of) for step in _of_service(of) if step.title != _ALIVE)


def run_dlq_checks(of: CheckContext) -> Iterator[CheckResult]:
    """Run the checks of the DLQs, and yield the results.

    The check of consumers is left out, because it calls CloudWatch.
    """
    yield from (_look(step, of) for step in _of_dlqs(of) if step.title != _CONSUMERS)


def _of_service(of: CheckContext) -> Iterator[_Step]:
    yield _Step("PostgreSQL", database.findings)
    yield _Step("Redis", partial(redis.findings, of.rates), asks_postgres=False)
    yield _Step("the service's own queues", partial(own_queues.findings, of.conf.own_queues), asks_postgres=False)
    yield _Step("clocks", partial(clocks.findings, of.now, of.conf.own_queues), asks_postgres=False)
    yield _Step(_ALIVE, partial(beat_and_workers.findings, of.control, hint_life=of.conf.hint_life.total_seconds()))
    yield _Step("tasks", beat_and_workers.task_findings)
    yield _Step("key queues", partial(stalled_lanes.findings, of.names))
    yield _Step("notifications", partial(notifications.findings, of.conf))
    yield _Step("configuration file", managed_objects.findings)
    yield _Step("payloads", partial(payloads.findings, of.conf))
    yield _Step("API tokens", partial(api_tokens.findings, of.conf))


def _of_dlqs(of: CheckContext) -> Iterator[_Step]:
    try:
        found = DeadLetterQueue.objects.order_by("name").select_related("interval", "crontab")
        rows = list(found.filter(name__in=of.names) if of.names else found)
    except (DatabaseError, InterfaceError):
        return  # the check of PostgreSQL has reported it
    for row in rows:
        yield _Step(row.name, partial(dlqs.findings, row, of.conf))
    if rows:
        yield _Step(_CONSUMERS, partial(consumers.findings, rows, of.now()))


def _look(step: _Step, of: CheckContext) -> CheckResult:
    found: list[DoctorFinding] = []
    try:
        with statement_timeout(_STATEMENT_TIMEOUT) if step.asks_postgres else nullcontext():
            found.extend(step.look())
    except RedriveError as error:
        found.append(error_finding(step.title, str(error), "The service cannot use it.", ""))
    except (DatabaseError, InterfaceError) as error:
        found.append(_without_postgres(step.title, error))
        connection.close()  # the next check gets another connection
    except of.ended_by:
        raise
    except Exception as error:  # noqa: BLE001  an error in a check must not stop the others
        what = f"The check itself failed: {type(error).__name__}."
        found.append(
            error_finding(
                step.title, what, "The result of this check is unknown.", "Report this error, and check by hand."
            )
        )
    return CheckResult(step.title, tuple(found) or (ok_finding(step.title, "no problems found."),))


def _without_postgres(title: str, error: Exception) -> DoctorFinding:
    said = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
    if title == "PostgreSQL":
        why = "It stores every message and attempt: nothing is captured or sent until it is back."
        return error_finding(
            title, f"It does not answer: {said}.", why, "Check DATABASE_URL, the network, and whether PostgreSQL runs."
        )
    return unknown_finding(title, f"PostgreSQL failed: {said}.", cure="See the finding about PostgreSQL above.")
