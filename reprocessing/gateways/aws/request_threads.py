"""Make several requests at a time, in threads that end before the function returns."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed, wait
from typing import Final, TypeVar

Work = TypeVar("Work")
Done = TypeVar("Done")

THREADS: Final = 8


def run_in_parallel(act: Callable[[Work], Done], works: Sequence[Work], threads: int) -> list[Done]:
    """Call `act` for every item of `works`, in parallel, and return the results in the order of `works`."""
    if len(works) <= 1 or threads <= 1:
        return [act(work) for work in works]
    with ThreadPoolExecutor(min(threads, len(works)), thread_name_prefix="sqs") as pool:
        return list(pool.map(act, works))


def run_as_completed(
    act: Callable[[Work], Done], works: Sequence[Work], threads: int, *, within: float
) -> Iterator[Done]:
    """Call `act` for every item of `works`, in this order and in parallel; yield each result as soon as it is there.

    After `within` seconds no further call begins. Calls that have begun are completed.
    """
    end = time.monotonic() + within

    def begin(work: Work) -> list[Done]:
        return [act(work)] if time.monotonic() < end else []

    with ThreadPoolExecutor(threads, thread_name_prefix="sqs") as pool:
        for finished in as_completed([pool.submit(begin, work) for work in works]):
            yield from finished.result()


def run_with_heartbeat(
    act: Callable[[Work], Done], works: Sequence[Work], threads: int, *, beat: Callable[[], None], every: float
) -> list[Done]:
    """Return what `run_in_parallel` returns, and call `beat` after every `every` seconds, in the calling thread.

    If `beat` raises, calls that have not begun are cancelled, and the exception is raised after the others.
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
