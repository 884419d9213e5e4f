"""A thread in each worker and beat process, which notifies people if beat sends no tasks, or no worker takes tasks.

The process that notices the silence sends the notifications itself, because the task for notifications needs beat and a
worker.
"""

from __future__ import annotations

import logging
import threading
import time

from celery.signals import beat_init, worker_ready, worker_shutdown
from django.db import connection

from reprocessing import conf
from reprocessing.domain.notifications.heartbeat import Watched, silence, watch
from reprocessing.pipeline.notifications import is_due, start_delivery
from reprocessing.pipeline.notifications import silence as silences
from reprocessing.store.notifications import heartbeats

logger = logging.getLogger(__name__)

#: Max seconds between two checks; min number of checks in the time (`silent_for`) after which silence is reported.
_EVERY, _CHECKS = 15.0, 8


class Watchdog(threading.Thread):
    """A thread that checks, until `stop` is called, whether beat and workers still work. A failed check is logged."""

    def __init__(self, control: str) -> None:
        """Prepare a watchdog.

        `control`: name of the queue to which beat sends ticks, and from which workers take them.
        """
        super().__init__(name="redrive watchdog", daemon=True)
        self._control = control
        self._over = threading.Event()
        self._known: Watched | None = None
        self._looked = 0.0

    def run(self) -> None:
        """Check beat and workers repeatedly, until `stop` is called."""
        every = min(_EVERY, conf.current().thresholds.silent_for.total_seconds() / _CHECKS)
        while not self._over.is_set():
            self.look(every=every, now=time.monotonic())
            self._over.wait(every)

    def stop(self) -> None:
        """End the thread after the current check."""
        self._over.set()

    def look(self, *, every: float, now: float) -> None:
        """Check beat and workers once. `now`: a monotonic clock, in seconds; `every`: seconds between two checks."""
        try:
            self._look(every, now)
        except Exception as error:  # noqa: BLE001  # PostgreSQL may be down; other checks report that
            logger.warning("It is not known whether beat and workers are running: %s.", type(error).__name__)
        finally:
            connection.close()

    def _look(self, every: float, now: float) -> None:
        view = conf.current()
        silent_for = view.thresholds.silent_for.total_seconds()
        signs = heartbeats.read_signs(self._control)
        self._known = watch(self._known, signs, elapsed=now - self._looked, longest=2 * every)
        self._looked = now
        found = silence(self._known, silent_for=silent_for)
        silences.record_silence(found, control=self._control, silent_for=silent_for)
        if (found.beat or found.workers) and is_due(view):
            start_delivery(view)


def watch_processes(control: str) -> None:
    """Start a watchdog when a worker or beat starts in this process. Stop the watchdog when the worker shuts down.

    `control`: name of the queue to which beat sends the task `tick`.
    """
    watchdog = Watchdog(control)

    def start(**_: object) -> None:
        if not watchdog.is_alive():
            watchdog.start()

    def stop(**_: object) -> None:
        watchdog.stop()

    for signal in (worker_ready, beat_init):
        signal.connect(start, weak=False)
    worker_shutdown.connect(stop, weak=False)
