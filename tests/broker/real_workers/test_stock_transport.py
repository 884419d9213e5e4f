"""What kombu's own transport does with the same faults. When one of these fails, kombu has mended it: shrink ours.

The version guard sends whoever raises kombu's version here (docs/adr/0001-celery-and-kombu-version.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.broker.local_sqs import LocalSqs
from tests.broker.real_workers.workers import START, Worker
from tests.conditions import eventually

# Ten workers at a time, and a version of kombu that is pinned: whoever raises it runs these.
pytestmark = [pytest.mark.soak, pytest.mark.long]

POOLS = ("prefork", "threads")
FATAL_FAULTS = {
    "internal-error": {"kind": "error", "status": 500, "code": "InternalError", "times": 1},
    "throttling": {"kind": "error", "status": 403, "code": "RequestThrottled", "times": 1},
    "kms-throttling": {"kind": "error", "status": 400, "code": "KMS.ThrottlingException", "times": 1},
    "drop": {"kind": "drop", "times": 3},
    "hang": {"kind": "hang", "times": 1},
}
POLLS_OF_OURS = 6  # while ours, which polls as often, polls six times more, one that lives polls at least once

Fates = dict[tuple[str, str], str]


@pytest.fixture(scope="module")
def fates(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fates]:
    """What became of a worker on kombu's transport, by fault and pool; all are struck at once."""
    folder = tmp_path_factory.mktemp("stock")
    with LocalSqs() as sqs, ExitStack() as running:
        ours = running.enter_context(Worker(sqs=sqs, folder=folder, name="ours", pool="threads"))
        stock = {
            (fault, pool): running.enter_context(
                Worker(sqs=sqs, folder=folder, name=f"{fault}-{pool}", pool=pool, transport="kombu")
            )
            for fault in FATAL_FAULTS
            for pool in POOLS
        }
        for worker in (ours, *stock.values()):
            worker.consumes(within=START)
        sqs.plan(
            *(
                {**FATAL_FAULTS[fault], "action": "ReceiveMessage", "queue": stock[fault, pool].name}
                for fault, pool in stock
            )
        )
        yield _fates(ours, stock)


def _fates(ours: Worker, stock: dict[tuple[str, str], Worker]) -> Fates:
    eventually(lambda: all(ours.sqs.fired()), within=30)
    eventually(_more_polls(ours, POLLS_OF_OURS), within=30)
    before = {key: worker.polls() for key, worker in stock.items()}
    for worker in stock.values():
        worker.send("tiny.mark", "after the fault")
    eventually(_more_polls(ours, POLLS_OF_OURS), within=30)
    return {key: _fate(worker, polls_before=before[key]) for key, worker in stock.items()}


def _more_polls(worker: Worker, more: int) -> Callable[[], bool]:
    enough = worker.polls() + more
    return lambda: worker.polls() >= enough


def _fate(worker: Worker, *, polls_before: int) -> str:
    if not worker.alive():
        return "ended"
    if "after the fault" in worker.marks():
        return "consumes"
    return "silent" if worker.polls() == polls_before else "polls and does not consume"


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("fault", FATAL_FAULTS)
def test_a_worker_on_kombus_own_transport_ends_or_falls_silent_after(fault: str, pool: str, fates: Fates) -> None:
    assert fates[fault, pool] in {"ended", "silent"}, "kombu survives this now: take out what we built against it"
