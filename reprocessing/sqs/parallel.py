"""Several requests at a time, by threads that end with the call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

Work = TypeVar("Work")
Done = TypeVar("Done")

THREADS: Final = 8


def side_by_side(act: Callable[[Work], Done], works: Sequence[Work], threads: int) -> list[Done]:
    """`act` of every work, in the order of the works; one at a time where there is one work or one thread."""
    if len(works) <= 1 or threads <= 1:
        return [act(work) for work in works]
    with ThreadPoolExecutor(min(threads, len(works)), thread_name_prefix="sqs") as pool:
        return list(pool.map(act, works))
