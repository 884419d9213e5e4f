"""Make several AWS requests at a time, in threads that this process keeps for later requests."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed, wait
from typing import Final, TypeVar

Work = TypeVar("Work")
Done = TypeVar("Done")

THREADS: Final = 8  #: usual number of requests at a time
_MOST_KEPT: Final = 256  #: most threads of the process


def _new_pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_MOST_KEPT, thread_name_prefix="sqs")  # begins a thread only if none is idle


_pool = _new_pool()


def run_beside(act: Callable[[], Done]) -> Future[Done]:
    """Call `act` in another thread, without waiting. Return a future, from which the caller gets the result."""
    return _pool.submit(act)


def run_in_parallel(act: Callable[[Work], Done], works: Sequence[Work], threads: int) -> list[Done]:
    """Call `act` for every item of `works`, in parallel, and return the results in the order of `works`.

    The calling thread makes calls, too. It never waits for a free thread, so `act` may call this function again. After
    an error, no further call begins, and the error is raised when all calls have ended.
    """
    if len(works) <= 1 or threads <= 1:
        return [act(work) for work in works]
    left, done = iter(range(len(works))), dict[int, Done]()

    def take_part() -> None:
        try:
            for number in left:  # several threads share this iterator; taking a number from it is atomic
                done[number] = act(works[number])
        except BaseException:
            for _ in left:
                pass
            raise

    helpers = [run_beside(take_part) for _ in range(min(threads, len(works)) - 1)]
    try:
        take_part()
    finally:
        begun = [helper for helper in helpers if not helper.cancel()]
        wait(begun)
    for helper in begun:
        helper.result()
    return [done[number] for number in range(len(works))]


def run_as_completed(
    act: Callable[[Work], Done], works: Sequence[Work], threads: int, *, within: float
) -> Iterator[Done]:
    """Call `act` for the items of `works` in parallel, and yield each result as soon as its call has ended.

    Calls begin in the order of `works`. After `within` seconds no further call begins, so the remaining items have no
    result. Calls that have begun before that are completed, and yield their results.
    """
    end = time.monotonic() + within

    def begin(work: Work) -> list[Done]:
        return [act(work)] if time.monotonic() < end else []

    if len(works) <= 1:
        for work in works:
            yield from begin(work)
        return
    with ThreadPoolExecutor(threads, thread_name_prefix="sqs") as pool:
        for finished in as_completed([pool.submit(begin, work) for work in works]):
            yield from finished.result()


def run_with_heartbeat(
    act: Callable[[Work], Done], works: Sequence[Work], threads: int, *, beat: Callable[[], None], every: float
) -> list[Done]:
    """Call `act` for every item of `works`, in parallel, and return the results in the order of `works`.

    Meanwhile, call `beat` every `every` seconds, in the calling thread. If `beat` raises, calls that have not begun
    are cancelled, and the exception is raised when the other calls have ended.
    """
    with ThreadPoolExecutor(max(min(threads, len(works)), 1), thread_name_prefix="aws") as pool:
        futures = [pool.submit(act, work) for work in works]
        pending = set(futures)
        try:
            while pending:
                pending = wait(pending, timeout=every).not_done
                if pending:
                    beat()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        return [future.result() for future in futures]


def _forget() -> None:
    global _pool  # noqa: PLW0603  one pool for each process
    _pool = _new_pool()


os.register_at_fork(after_in_child=_forget)  # threads do not survive a fork
