"""Delete rows past their retention, such as letters, their bodies and history, and consumer reports."""

from __future__ import annotations

import logging
import random
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from django.db import connection

from reprocessing.conf import Conf
from reprocessing.domain.errors import StepsFailed
from reprocessing.models import DeadLetterQueue
from reprocessing.store.api import calls
from reprocessing.store.approvals import requests
from reprocessing.store.maintenance import body_retention, counters, retention
from reprocessing.store.maintenance.retention import ExpiredRow
from reprocessing.store.notifications import incident_retention, sending
from reprocessing.store.replay import task_hints
from reprocessing.store.runs import run_minutes

logger = logging.getLogger(__name__)

#: Most rows that one call deletes: letters and similar rows; failure groups, bulk actions and incidents.
_GROUP, _CAUSES = 1_000, 10_000
#: Seconds between two purges that leave no old rows.
PURGE_EVERY = 3600.0
#: Seconds in which rows are deleted in chunks: a worker that must stop can finish a purge. If rows are left, the next
#: purge begins this much later, so that other tasks have their turn.
_SECONDS = 60.0

_DICE = random.SystemRandom().random


def purge_expired(
    *, conf: Conf, seconds: float = _SECONDS, clock: Callable[[], float] = time.monotonic,
    dice: Callable[[], float] = _DICE,
) -> bool:  # fmt: skip
    """Delete letters that finished longer ago than `conf.history`, and other old rows; return whether some are left.

    A letter is kept at least until the DLQ's retention and one more day have passed since its message was deleted from
    the DLQ: until then, SQS could deliver the message again, and it would count as new. The body of a letter is deleted
    earlier if its DLQ has a retention for bodies (`keep_bodies`).

    Tables that may have many old rows take turns: each turn deletes 1,000 rows. After `seconds`, measured by `clock`,
    no further turn begins. If old rows are left then, the next purge is due in as many seconds; in twice as many, if
    this purge does not end, because its worker is killed or PostgreSQL fails. If a turn fails, the error is logged, and
    its rows are left. `dice` returns random numbers from 0 to below 1: the order of the turns is random, so that no DLQ
    always waits for all others.

    Raises:
        StepsFailed: a turn failed with an unexpected error. The other rows were deleted.
        django.db.Error: PostgreSQL does not answer.
    """
    task_hints.make_purge_due(within=2 * seconds, every=PURGE_EVERY)
    history = conf.history.total_seconds()
    _delete_small_tables(history)
    steps = sorted(_steps(history), key=lambda _: dice())
    until = clock() + seconds
    left, failed = _delete_in_turns(steps, stop=lambda: clock() >= until)
    task_hints.make_purge_due(within=seconds if left or failed else PURGE_EVERY, every=PURGE_EVERY)
    if failed:
        raise StepsFailed("Some rows past their retention could not be deleted. The next purge tries again.")
    return left


def _delete_small_tables(history: float) -> None:
    retention.delete_waves(history=history)
    retention.delete_groups(history=history, limit=_CAUSES)
    retention.delete_bulk_actions(history=history, limit=_CAUSES)
    requests.delete_ended(history=history)
    counters.delete_old_hours(history=history)
    incident_retention.delete_incidents(history=history, limit=_CAUSES)
    sending.give_up_old()  # gives up old notifications, also for destinations without a URL


def _steps(history: float) -> Iterator[Iterator[int]]:
    """Return iterators that delete up to 1,000 rows for each value, which is the number of deleted rows."""
    for dlq in DeadLetterQueue.objects.order_by("pk").values_list("pk", flat=True):
        yield _in_order(partial(retention.delete_letters, dlq, history=history, limit=_GROUP))
    for dlq in body_retention.dlqs_with_body_retention():
        yield _in_order(partial(_delete_bodies, dlq))
    yield _in_order(partial(retention.delete_reports, history=history, limit=_GROUP))
    yield _repeated(partial(counters.delete_old_group_hours, limit=_GROUP))
    yield _repeated(partial(run_minutes.delete_old_minutes, limit=_GROUP))
    yield _repeated(partial(calls.delete_old, limit=_GROUP))


def _delete_bodies(dlq: int, *, after: ExpiredRow | None) -> list[ExpiredRow]:
    deleted = body_retention.delete_bodies(dlq, limit=_GROUP, after=after)
    body_retention.store_deleted_through(dlq)
    return deleted


def _in_order(delete: Callable[..., list[ExpiredRow]]) -> Iterator[int]:
    """Call `delete` for each value, from the last row of the call before, so that no kept row is read again."""
    after: ExpiredRow | None = None
    while True:
        deleted = delete(after=after)
        yield len(deleted)
        after = deleted[-1]


def _repeated(delete: Callable[[], int]) -> Iterator[int]:
    while True:
        yield delete()


def _delete_in_turns(steps: Iterable[Iterator[int]], *, stop: Callable[[], bool]) -> tuple[bool, bool]:
    """Take a value of each step in turn, until the value is less than 1,000.

    Return whether `stop` ended this while rows were left, and whether a step failed.
    """
    waiting, failed = deque(steps), False
    while waiting:
        step = waiting.popleft()
        try:
            if next(step) >= _GROUP:
                waiting.append(step)
        except Exception:
            if not connection.is_usable():
                raise
            logger.exception("Rows past their retention could not be deleted. The next purge tries again.")
            failed = True
        if waiting and stop():
            return True, failed
    return False, failed
