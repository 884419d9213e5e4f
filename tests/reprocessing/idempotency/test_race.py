"""Many workers at one key, and a worker that is killed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress

import pytest

from reprocessing.idempotency import InProgress, idempotent, once
from tests.race.abreast import together
from tests.reprocessing.idempotency.stock import SPACE, at_work, lapse, row

pytestmark = pytest.mark.django_db(transaction=True)
THREADS = 16
#: Work that says that it has begun, and never ends.
CODE = """
from reprocessing.idempotency import once
with once("key", space="orders", {how}):
    print("begun", flush=True)
    input()
"""


def counted(
    executions: list[int], *, wait: float, during: Callable[[], object] = lambda: None, transactional: bool = False
) -> Callable[[], object]:
    @idempotent(key=lambda: "key", space=SPACE, wait=wait, transactional=transactional)
    def work() -> int:
        executions.append(threading.get_ident())
        during()
        return len(executions)

    def ask() -> object:
        try:
            return work()
        except InProgress as told:
            return f"in progress, {told.retry_after > 0}"

    return ask


@pytest.mark.parametrize("transactional", [False, True])
def test_sixteen_threads_execute_once_and_the_others_get_the_result(transactional: bool) -> None:
    executions: list[int] = []
    said = together([counted(executions, wait=20, transactional=transactional)] * THREADS)
    assert len(executions) == 1
    assert said == [1] * THREADS


def test_sixteen_threads_that_do_not_wait_execute_once_and_the_others_are_told_to_retry() -> None:
    executions: list[int] = []
    all_were_told = threading.Semaphore(0)
    ask = counted(executions, wait=0, during=lambda: [all_were_told.acquire(timeout=20) for _ in range(THREADS - 1)])

    def told() -> object:
        said = ask()
        all_were_told.release()
        return said

    said = together([told] * THREADS)
    assert len(executions) == 1
    assert sorted(map(str, said)) == ["1"] + ["in progress, True"] * (THREADS - 1)


def test_failing_work_is_done_by_one_thread_at_a_time() -> None:
    inside, most, failed = 0, 0, 0
    lock = threading.Lock()

    @idempotent(key=lambda: "key", space=SPACE, wait=20)
    def work() -> None:
        nonlocal inside, most, failed
        with lock:
            inside += 1
            most = max(most, inside)
        with lock:
            inside -= 1
            failed += 1
        if failed <= 4:
            raise ValueError(failed)

    def ask() -> None:
        with suppress(ValueError):
            work()

    together([ask] * 8)
    assert (most, failed) == (1, 5)
    assert (row().state, row().attempts, row().failures) == ("done", 5, 4)


@pytest.mark.soak
def test_killed_work_is_taken_over_after_its_lease() -> None:
    with at_work(CODE.format(how="lease=600")) as process:
        process.kill()
        process.wait(10)
    with pytest.raises(InProgress), once("key", space=SPACE):
        pass
    lapse()
    with once("key", space=SPACE) as claim:
        assert claim.found is None
    assert (row().state, row().attempts, row().failures) == ("done", 2, 0)


@pytest.mark.soak
def test_killed_transactional_work_leaves_nothing_and_is_taken_over() -> None:
    with at_work(CODE.format(how="transactional=True")) as process:
        with pytest.raises(InProgress), once("key", space=SPACE, transactional=True):
            pass
        process.kill()
        process.wait(10)
        with once("key", space=SPACE, transactional=True, wait=10) as claim:
            assert claim.found is None
    assert (row().state, row().attempts) == ("done", 1)
