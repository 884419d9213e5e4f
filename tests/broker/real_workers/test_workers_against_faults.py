"""Real workers, prefork and threads, struck by every fault of a receive: the same process must consume again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from redrive_service.broker.timeouts import Timeouts
from tests.broker.local_sqs import LocalSqs
from tests.broker.real_workers.workers import START, Worker
from tests.conditions import eventually

pytestmark = pytest.mark.soak

RECOVERED = 45.0  # seconds after the last fault: what the service promises
POOLS = ("prefork", "threads")

FAULTS = {
    "an internal error": {"kind": "error", "status": 500, "code": "InternalError", "times": 1},
    "a service that is unavailable": {"kind": "error", "status": 503, "code": "ServiceUnavailable", "times": 1},
    "throttling": {"kind": "error", "status": 403, "code": "RequestThrottled", "times": 1},
    "throttling by KMS": {"kind": "error", "status": 400, "code": "KMS.ThrottlingException", "times": 1},
    "expired credentials": {"kind": "error", "status": 403, "code": "ExpiredToken", "times": 1},
    "a queue that was deleted": {"kind": "error", "status": 400, "code": "QueueDoesNotExist", "times": 1},
    "a dropped connection": {"kind": "drop", "times": 3},  # once, and curl itself tries again
    "a receive that hangs": {"kind": "hang", "times": 1},
    "twelve errors in a row": {"kind": "error", "status": 403, "code": "RequestThrottled", "times": 12},
    "a delete that is denied": {
        "kind": "error", "action": "DeleteMessage", "status": 403, "code": "AccessDenied", "times": 1,
    },
}  # fmt: skip
#: One of each kind; the soak has them all.
QUICK = {
    "an internal error", "expired credentials", "a dropped connection", "a receive that hangs",
    "a delete that is denied",
}  # fmt: skip


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Worker]]:
    """One worker a pool, the same ones for all faults."""
    folder: Path = tmp_path_factory.mktemp("workers")
    with LocalSqs() as sqs, ExitStack() as running:
        yield [running.enter_context(Worker(sqs=sqs, folder=folder, name=f"tiny-{pool}", pool=pool)) for pool in POOLS]


@pytest.mark.long
@pytest.mark.parametrize(
    "fault",
    [pytest.param(fault, id=name, marks=() if name in QUICK else pytest.mark.soak) for name, fault in FAULTS.items()],
)
def test_the_same_worker_consumes_again_after(fault: dict[str, object], workers: list[Worker]) -> None:
    for worker in workers:
        worker.consumes(within=START)
    workers[0].sqs.plan(*({"action": "ReceiveMessage", **fault, "queue": worker.name} for worker in workers))
    for worker in workers:
        worker.consumes(within=RECOVERED)
    eventually(lambda: workers[0].sqs.fired() == [fault["times"]] * len(workers), within=RECOVERED)
    for worker in workers:
        worker.consumes(within=RECOVERED)


def test_productions_waits_add_up_to_less_than_was_promised() -> None:
    timeouts = Timeouts()
    assert timeouts.receive(long_poll=20) + timeouts.longest_pause < RECOVERED
    assert timeouts.overdue(long_poll=20) + timeouts.longest_pause <= RECOVERED
