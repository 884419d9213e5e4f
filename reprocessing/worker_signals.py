"""React to Celery's signals: record whether the service's own tasks fail, and finish work before a worker ends.

Recorded failures are for redrive_doctor, which finds tasks that fail every time.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final, Protocol

from celery._state import get_current_task
from celery.signals import task_failure, task_revoked, task_success, worker_process_shutdown, worker_shutdown
from django.db import DatabaseError, InterfaceError, connection

from reprocessing import conf
from reprocessing.pipeline import notifications
from reprocessing.pipeline.replay import attempt_spans, late_answers
from reprocessing.store.maintenance import task_failures

logger = logging.getLogger(__name__)

#: Seconds that a worker waits, when it stops, for slow targets and for notifications; and to export spans.
SHUTDOWN_WAIT, SPANS_WAIT = 10.0, 5.0
#: The names of the service's own tasks begin with one of these.
_PREFIXES: Final = ("reprocessing.", "redrive_service.")
#: Each process records at most one success of a task in so many seconds, because some tasks are short and many.
_SUCCESS_EVERY: Final = 10.0


class _Task(Protocol):
    name: str


class TaskResults:
    """Receives Celery's signals about tasks. `clock`: returns monotonic seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._recorded = dict[str, float]()

    def failed(self, *, sender: _Task, **_: object) -> None:
        """Record that a task of the service failed."""
        if sender.name.startswith(_PREFIXES):
            self._recorded.pop(sender.name, None)
            _record(task_failures.record_failure, sender.name)
            # Outside a task, this is the worker's main process: its children must not inherit the connection.
            if get_current_task() is None:
                connection.close()

    def revoked(self, *, sender: _Task, expired: bool, **_: object) -> None:
        """Record that a task of the service failed, if it was not run because it came too late.

        Tasks expire if workers have more tasks than they can run, or if the clock of a worker is wrong.
        """
        if expired:
            self.failed(sender=sender)

    def succeeded(self, *, sender: _Task, **_: object) -> None:
        """Record that a task of the service succeeded, unless this was recorded less than 10 s ago."""
        now, name = self._clock(), sender.name
        if name.startswith(_PREFIXES) and now - self._recorded.get(name, -_SUCCESS_EVERY) >= _SUCCESS_EVERY:
            self._recorded[name] = now
            _record(task_failures.record_success, sender.name)


def connect_signals() -> None:
    """From now on, react to the signals of the tasks and workers of this process."""
    results = TaskResults()
    task_failure.connect(results.failed, weak=False)
    task_revoked.connect(results.revoked, weak=False)
    task_success.connect(results.succeeded, weak=False)
    worker_process_shutdown.connect(_finish)
    worker_shutdown.connect(_finish)


def _record(write: Callable[[str], None], task: str) -> None:
    try:
        write(task)
    except (DatabaseError, InterfaceError) as error:  # PostgreSQL is down: other checks report that
        logger.warning("It was not recorded whether %s failed: %s.", task, type(error).__name__)


def _finish(**_: object) -> None:
    """Wait for answers of targets and of notification destinations, and export trace spans."""
    late_answers.wait_for_all(SHUTDOWN_WAIT)
    notifications.wait_for_delivery(SHUTDOWN_WAIT)
    attempt_spans.flush(conf.current(), SPANS_WAIT)
