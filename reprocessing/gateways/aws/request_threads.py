"""Several requests at a time, by threads that end with the call."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Final, TypeVar

Work = TypeVar("Work")
Done = TypeVar("Done")

THREADS: Final = 8


def run_in_parallel(act: Callable[[Work], Done], works: Sequence[Work], threads: int) -> list[Done]:
    """`act` of every work, in the order of the works; one at a time where there is one work or one thread."""
    if len(works) <= 1 or threads <= 1:
        return [act(work) for work in works]
    with ThreadPoolExecutor(min(threads, len(works)), thread_name_prefix="sqs") as pool:
        return list(pool.map(act, works))


def run_as_completed(
    act: Callable[[Work], Done], works: Sequence[Work], threads: int, *, within: float
) -> Iterator[Done]:
    """`act` of every work, each as soon as it has ended: none waits for one that takes longer.

    Args:
        act: asked by the threads.
        works: begun in their order.
        threads: works under way at a time.
        within: seconds after which no other work is begun. What was begun by then is waited for.
    """
    end = time.monotonic() + within

    def begin(work: Work) -> list[Done]:
        return [act(work)] if time.monotonic() < end else []

    with ThreadPoolExecutor(threads, thread_name_prefix="sqs") as pool:
        for finished in as_completed([pool.submit(begin, work) for work in works]):
            yield from finished.result()
