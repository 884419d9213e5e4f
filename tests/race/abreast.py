"""Work on several connections to Postgres at the same time, ordered by conditions, never by a clock."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from django.db import connection, connections, transaction

from tests.conditions import eventually

Done = TypeVar("Done")
Other = TypeVar("Other")


def _alone(work: Callable[[], Done]) -> Done:
    try:
        return work()
    finally:
        connections.close_all()


@contextmanager
def elsewhere() -> Iterator[Callable[[Callable[[], Done]], Future[Done]]]:
    """Begin work on its own thread and connection, which ends with the block."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        yield lambda work: pool.submit(_alone, work)


def together(works: Sequence[Callable[[], Done]]) -> list[Done]:
    """Run all at the same time, each on its own connection; return what they returned, in order."""
    start = threading.Barrier(len(works))

    def begin(work: Callable[[], Done]) -> Done:
        connection.ensure_connection()
        start.wait(10)
        return work()

    with ThreadPoolExecutor(max_workers=len(works)) as pool:
        return [done.result(60) for done in [pool.submit(_alone, lambda work=work: begin(work)) for work in works]]


def waits_for_us() -> None:
    """Return when another connection waits for a lock that this one holds."""
    eventually(_someone_is_blocked, within=10)


def _someone_is_blocked() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid)))"
        )
        return bool(cursor.fetchone()[0])


def behind(first: Callable[[], Other], second: Callable[[], Done]) -> tuple[Other, Done]:
    """Run `first` in a transaction, and commit when `second` waits for it; return what both returned."""
    with elsewhere() as begin:
        with transaction.atomic():
            done = first()
            waiting = begin(second)
            waits_for_us()
        return done, waiting.result(20)


def overtaken(work: Callable[[], Done], by: Callable[[], object]) -> Done:
    """Run `by` while `work` waits for the locks of all lanes; return what `work` returned."""
    with elsewhere() as begin:
        with holding_lanes():
            waiting = begin(work)
            waits_for_us()
            by()
        return waiting.result(20)


@contextmanager
def holding_lanes() -> Iterator[None]:
    """Lock every lane until the end of the block."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT id FROM redrive_lane ORDER BY id FOR UPDATE")
        yield


def nobody_holds_letters() -> bool:
    """Return whether no other connection has locked a letter."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT (SELECT count(*) FROM redrive_letter) = count(*) FROM ("
                       "SELECT id FROM redrive_letter FOR UPDATE SKIP LOCKED) free")  # fmt: skip
        return bool(cursor.fetchone()[0])
