"""Two connections to Postgres at the same time, stopped and started by conditions, never by a clock."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from django.db import connection, connections, transaction

from tests.conditions import eventually

Done = TypeVar("Done")


def _alone(work: Callable[[], Done]) -> Done:
    try:
        return work()
    finally:
        connections.close_all()


@contextmanager
def elsewhere() -> Iterator[Callable[[Callable[[], Done]], Future[Done]]]:
    """Begins work on a thread and a connection of its own; joined at the end of the block."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        yield lambda work: pool.submit(_alone, work)


def together(works: Sequence[Callable[[], Done]]) -> list[Done]:
    """All of them at the same time, each on a connection of its own; what they returned, in order."""
    start = threading.Barrier(len(works))

    def begin(work: Callable[[], Done]) -> Done:
        connection.ensure_connection()
        start.wait(10)
        return work()

    with ThreadPoolExecutor(max_workers=len(works)) as pool:
        return [one.result(60) for one in [pool.submit(_alone, lambda work=work: begin(work)) for work in works]]


def waits_for_us() -> None:
    """Return when another connection stands before a lock that this one holds."""
    eventually(_someone_is_blocked, within=10)


def _someone_is_blocked() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid)))"
        )
        return bool(cursor.fetchone()[0])


@contextmanager
def holding_lanes() -> Iterator[None]:
    """Every lane locked, as its writers lock it, until the end of the block."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT id FROM redrive_lane ORDER BY id FOR UPDATE")
        yield


def nobody_holds_letters() -> bool:
    """Whether no letter is locked by anybody else."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT (SELECT count(*) FROM redrive_letter) = count(*) FROM ("
                       "SELECT id FROM redrive_letter FOR UPDATE SKIP LOCKED) free")  # fmt: skip
        return bool(cursor.fetchone()[0])
