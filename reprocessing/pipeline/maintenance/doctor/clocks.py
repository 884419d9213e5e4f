"""Compare the clocks of PostgreSQL, SQS and this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from django.db import DatabaseError, InterfaceError

from reprocessing.domain.errors import QueueUnreachable
from reprocessing.domain.maintenance.findings import DoctorFinding, clock_finding, unknown_finding
from reprocessing.gateways.sqs import QueueAddress
from reprocessing.gateways.sqs.permission_probe import clock as of_sqs
from reprocessing.store.ordering import lanes

_POSTGRES: Final = "PostgreSQL's clock against this machine's"
_SQS: Final = "SQS's clock against this machine's"
_SECOND: Final = timedelta(seconds=1)  #: the resolution of SQS's time


def findings(now: Callable[[], datetime], urls: Sequence[str]) -> Iterator[DoctorFinding]:
    """Yield findings about the clocks of PostgreSQL and SQS, compared with this machine's clock (`now`).

    `urls`: queues; the first queue that answers shows SQS's time.
    """
    try:
        yield _compared(_POSTGRES, lanes.database_now, now, timedelta(0))
    except (DatabaseError, InterfaceError):
        yield unknown_finding(
            _POSTGRES, "PostgreSQL did not return its time.", cure="See the finding about PostgreSQL above."
        )
    yield _sqs(now, urls)


def _sqs(now: Callable[[], datetime], urls: Sequence[str]) -> DoctorFinding:
    why = "The service's own queues are not set, so SQS was not asked."
    for url in urls:
        try:
            return _compared(_SQS, partial(of_sqs, QueueAddress.of(url)), now, _SECOND)
        except QueueUnreachable as error:
            why = str(error)
    return unknown_finding(_SQS, why)


def _compared(
    where: str, ask: Callable[[], datetime | None], now: Callable[[], datetime], grain: timedelta
) -> DoctorFinding:
    before = now()
    said = ask()
    took = now() - before
    if said is None:
        return unknown_finding(where, "SQS did not return its time.")
    return clock_finding(where, said - before - took / 2, grain + took / 2)
